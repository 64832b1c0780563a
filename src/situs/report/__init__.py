"""What a person looks at: rows first, then one HTML file, explanations and exports."""
