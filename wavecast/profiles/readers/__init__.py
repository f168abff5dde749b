"""One reader per format; `wavecast.profiles.reading` chooses by content."""
