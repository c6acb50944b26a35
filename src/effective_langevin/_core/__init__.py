"""What every stage needs: errors, argument checks, random keys, progress, array types."""
