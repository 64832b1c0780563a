"""Contract suites, tiny problems and Hypothesis strategies, for our tests and third parties'."""
