"""The app: `streamlit run app.py`. Navigation and page wiring; the pages live in minigrad/ui."""

import streamlit as st

from minigrad.ui import lessons

st.set_page_config(page_title="minigrad", page_icon="∂", layout="wide")
st.navigation([st.Page(lessons.page, title="Lessons", url_path="lessons", default=True)]).run()
