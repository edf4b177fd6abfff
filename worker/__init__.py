"""Executes queued runs: an asyncio worker for RQ's queues."""
