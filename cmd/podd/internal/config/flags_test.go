package config

import (
	"testing"

	"github.com/alecthomas/kong"
)

// parse parses a command line as podd run does. It fails the test after an error.
func parse(t *testing.T, args ...string) Flags {
	t.Helper()
	f, err := tryParse(args...)
	if err != nil {
		t.Fatalf("parsing %q: %v", args, err)
	}
	return f
}

// tryParse is like parse, but returns the error.
func tryParse(args ...string) (Flags, error) {
	var f Flags
	k, err := kong.New(&f, kong.Exit(func(int) { panic("exit") }))
	if err != nil {
		return f, err
	}
	noValue := map[string]bool{}
	var names []string
	for _, flag := range k.Model.Flags {
		noValue[flag.Name] = flag.IsBool()
		names = append(names, flag.Name)
	}
	rest, unserved, err := NormalizeArgs(args, func(name string) (bool, bool) { b, ok := noValue[name]; return b, ok }, names)
	if err != nil {
		return f, err
	}
	_, err = k.Parse(rest)
	f.Unsupported = unserved
	return f, err
}
