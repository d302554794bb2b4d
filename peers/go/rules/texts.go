package main

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
)

type selectorCase struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Print string `json:"print,omitempty"`
	Error string `json:"error,omitempty"`
}

func selectorCases() (any, error) {
	var cases []selectorCase
	for _, text := range []string{
		"", "x", "!x", "x=1", "x==1", "x!=1", "x in (1,2)", "x notin (2,1)", "x>1", "x<1", "a,b=1,!c", "b,a", "x=", "x in ()",
		"x in (,)", "x in (1,)", "x in (,1)", "x in (1,,2)", "in", "notin in (in,notin)", " x = 1 ", "x\t!=\n1", ",", "x,", "x,,y",
		"x y", "x=a b", "!", "!x=1", "x in 1", "x in (1", "x in (1 2)", "x in (=)", "x in (1,=)", "x=!", "x==!", "x>a", "x>1.5",
		"x<", "-x", "x=a||y", "x/y/z", "/x", "x=-", "!!x", "(x)", "x=(1)", "x in (1))", "x in ((1))", "==", "x=1=2", "a b in (c)",
		"x>=1", "ä=1",
	} {
		one := selectorCase{Kind: "label", Text: text}
		parsed, err := labels.Parse(text)
		if err != nil {
			one.Error = err.Error()
		} else {
			one.Print = parsed.String()
		}
		cases = append(cases, one)
	}
	for _, text := range []string{
		"", "a=b", "a==b", "a!=b", "a=b,c=d", "a", ",", "a=", "=b", "a=b=c", `a=b\=c`, `a=b\,c,d=e`, `a=b\x`, `a=b\`, "a=b,c", "a!b", "a=!b",
	} {
		one := selectorCase{Kind: "field", Text: text}
		if _, err := fields.ParseSelector(text); err != nil {
			one.Error = err.Error()
		}
		cases = append(cases, one)
	}
	return cases, nil
}

type textCase struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func jsonErrorCases() (any, error) {
	var cases []textCase
	for _, text := range []string{
		"{}", "null", " {\"a\":[1,-2.5e-3,true,null]} ", "", " ", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "[", "[1,", "tr", "-",
		"{\"a\":1.", "{\"a\":\"\\u12", "[]", " \"x\"", "1", "-1.5e3", "true", "false", "x", "{} y", "1x", "01", "{a", "{\"a\":1,}", "{\"a\" 1",
		"{\"a\":1 \"", "[1 2", "[1,]", "{\"a\":\"\n", "{\"a\":\"\\x", "{\"a\":\"\\u12g", "-a", "1.a", "1ea", "1e+a", "txue", "nulL", "fALSE", "'",
		"ÿ", "{\"a\":\"é\"}", "{]", "[}", "{\"a\":[1,{\"b\":}]}", "{,}", "[,]", "{\"a\"::1}", "\ufeff{}", "{\"a\":.5}", "{\"a\":+1}",
	} {
		one := textCase{Text: text}
		if err := json.Unmarshal([]byte(text), &map[string]any{}); err != nil {
			one.Error = err.Error()
		}
		cases = append(cases, one)
	}
	return cases, nil
}

type durationCase struct {
	Seconds int64  `json:"seconds"`
	Text    string `json:"text"`
}

func durationCases() (any, error) {
	const minute, hour, day = 60, 3600, 86400
	const year = 365 * day
	var cases []durationCase
	for _, around := range []int64{
		0, 1, 2 * minute, 3 * minute, 10 * minute, 3 * hour, 4 * hour, 8 * hour, 2 * day, 3 * day, 8 * day, 730 * day, 3 * year, 8 * year, 100 * year,
	} {
		for _, offset := range []int64{-90, -3, -2, -1, 0, 1, 59, 61, hour, day, 40 * day} {
			seconds := around + offset
			cases = append(cases, durationCase{seconds, duration.HumanDuration(time.Duration(seconds) * time.Second)})
		}
	}
	return cases, nil
}
