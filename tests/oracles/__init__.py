"""What tests compare with: processes with exact answers, sample series and files, a browser, a command line."""
