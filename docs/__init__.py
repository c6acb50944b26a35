"""Documentation: pages in Markdown, built by Sphinx; `snippets` runs their code."""
