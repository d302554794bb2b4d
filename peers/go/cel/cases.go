package main

// cases are the requests of each golden file.
func cases() map[string][]Request {
	return map[string][]Request{
		"core.jsonl":        coreCases(),
		"errors.jsonl":      errorCases(),
		"variables.jsonl":   variableCases(),
		"strings.jsonl":     expressions(stringCases),
		"lists.jsonl":       expressions(listCases),
		"collections.jsonl": expressions(collectionCases),
		"network.jsonl":     expressions(networkCases),
		"numbers.jsonl":     expressions(numberCases),
		"formats.jsonl":     expressions(formatCases),
		"authorizer.jsonl":  authorizerCases(),
		"rules.jsonl":       ruleCases(),
		"admission.jsonl":   admissionCases(),
	}
}

func expressions(texts []string) []Request {
	requests := make([]Request, len(texts))
	for index, text := range texts {
		requests[index] = Request{Expression: text}
	}
	return requests
}
