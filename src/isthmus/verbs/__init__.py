"""The verbs: from data to an answer, thin over the layers below."""
