"""One reader per format; `wavecast.bench.profiles.reading` chooses by content."""
