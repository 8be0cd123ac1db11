"""The Streamlit pages, and the mount of the one stepper in them."""
