"""Waves and workgroups that wait for others which have ended or cannot start."""
