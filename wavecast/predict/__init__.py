"""Predicting launches from executed samples: which workgroups to run, what they did, how long all
will take."""
