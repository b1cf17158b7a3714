"""The choice of models and partition schemes."""
