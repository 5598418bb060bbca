package main

import (
	"slices"
	"testing"
)

func TestFormatProblems(t *testing.T) {
	for name, c := range map[string]struct{ before, now, want []string }{
		"none":              {nil, nil, nil},
		"new":               {[]string{"a"}, []string{"a", "b"}, []string{"! b"}},
		"unchanged":         {[]string{"a"}, []string{"a"}, nil},
		"one of two solved": {[]string{"a", "b"}, []string{"b"}, nil},
		"solved":            {[]string{"a", "b"}, nil, []string{"+ all problems solved"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatProblems(c.before, c.now); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
