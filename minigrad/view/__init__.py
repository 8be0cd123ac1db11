"""From a trace to what people look at; no maths, no streamlit."""
