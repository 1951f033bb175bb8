"""Looking into foreign files, in a process of its own. Started by `ssno.data.files.probe`."""
