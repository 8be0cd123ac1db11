"""The app: `streamlit run app.py`. Navigation and page wiring; the pages live in minigrad/ui."""

import streamlit as st

from minigrad.ui import lessons, ops

st.set_page_config(page_title="minigrad", page_icon="∂", layout="wide")
pages = [
    st.Page(lessons.page, title="Lessons", url_path="lessons", default=True),
    st.Page(ops.page, title="Ops", url_path="ops"),
]
page = st.navigation(pages, position="hidden")
with st.container(horizontal=True, gap="small"):  # at any width; Streamlit's own would fold away
    for each in pages:
        st.page_link(each)
page.run()
