"""The engine: cuts a text into numbered segments, asks a judge model about them, and reads what it answers."""
