package runtimetest_test

import (
	"strings"
	"testing"
	"time"

	"podd/runtime/runtimetest"
)

func TestParse(t *testing.T) {
	type program = runtimetest.Program
	for script, want := range map[string]program{
		"exit 3":                                {IgnoresTerm: true, ExitsByItself: true, Code: 3},
		"/bin/true":                             {IgnoresTerm: true, ExitsByItself: true},
		"false":                                 {IgnoresTerm: true, ExitsByItself: true, Code: 1},
		"sleep 2; exit 4":                       {IgnoresTerm: true, ExitsByItself: true, Run: 2 * time.Second, Code: 4},
		"sleep 1h":                              {IgnoresTerm: true, ExitsByItself: true, Run: time.Hour},
		"sleep 1d":                              {IgnoresTerm: true, ExitsByItself: true, Run: 24 * time.Hour},
		"sleep inf":                             {IgnoresTerm: true, Run: -1},
		"echo hi; exit 1; sleep 9":              {IgnoresTerm: true, ExitsByItself: true, Output: "hi\n", Code: 1},
		"echo a; sleep infinity":                {IgnoresTerm: true, Output: "a\n", Run: -1},
		"trap 'exit 0' TERM; sleep 1000 & wait": {ExitsByItself: true, Run: 1000 * time.Second, ExitsZeroOnTerm: true},
		"trap 'exit 7' TERM; sleep inf":         {Run: -1, TermCode: 7, ExitsZeroOnTerm: true},
		"trap '' TERM; sleep inf":               {IgnoresTerm: true, Run: -1},
		"server --port 80":                      {},
		"":                                      {},
	} {
		if got := runtimetest.Parse([]string{"/bin/sh", "-c", script}); got != want {
			t.Errorf("%q: got %+v, want %+v", script, got, want)
		}
		if strings.ContainsAny(script, ";'") {
			continue
		}
		if got := runtimetest.Parse(strings.Fields(script)); got != want {
			t.Errorf("%q without a shell: got %+v, want %+v", script, got, want)
		}
	}
	if got := runtimetest.Parse([]string{"/no/such"}); got.StartError == "" {
		t.Errorf("got %+v, want a start error", got)
	}
}
