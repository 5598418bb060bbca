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
		"exit 3":                                {IgnoresTerm: true, ExitsByItself: true, ExitCode: 3},
		"/bin/true":                             {IgnoresTerm: true, ExitsByItself: true},
		"false":                                 {IgnoresTerm: true, ExitsByItself: true, ExitCode: 1},
		"sleep 2; exit 4":                       {IgnoresTerm: true, ExitsByItself: true, RunDuration: 2 * time.Second, ExitCode: 4},
		"sleep 1h":                              {IgnoresTerm: true, ExitsByItself: true, RunDuration: time.Hour},
		"sleep 1d":                              {IgnoresTerm: true, ExitsByItself: true, RunDuration: 24 * time.Hour},
		"sleep inf":                             {IgnoresTerm: true, RunDuration: -1},
		"echo hi; exit 1; sleep 9":              {IgnoresTerm: true, ExitsByItself: true, Output: "hi\n", ExitCode: 1},
		"echo a; sleep infinity":                {IgnoresTerm: true, Output: "a\n", RunDuration: -1},
		"trap 'exit 0' TERM; sleep 1000 & wait": {ExitsByItself: true, RunDuration: 1000 * time.Second, ExitsZeroOnTerm: true},
		"trap 'exit 7' TERM; sleep inf":         {RunDuration: -1, TermCode: 7, ExitsZeroOnTerm: true},
		"trap '' TERM; sleep inf":               {IgnoresTerm: true, RunDuration: -1},
		"server --port 80":                      {},
		"":                                      {},
	} {
		if got := runtimetest.ParseProgram([]string{"/bin/sh", "-c", script}); got != want {
			t.Errorf("%q: got %+v, want %+v", script, got, want)
		}
		if strings.ContainsAny(script, ";'") {
			continue
		}
		if got := runtimetest.ParseProgram(strings.Fields(script)); got != want {
			t.Errorf("%q without a shell: got %+v, want %+v", script, got, want)
		}
	}
	if got := runtimetest.ParseProgram([]string{"/no/such"}); got.StartError == "" {
		t.Errorf("got %+v, want a start error", got)
	}
}
