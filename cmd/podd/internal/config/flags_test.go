package config

import (
	"testing"

	"github.com/alecthomas/kong"
)

// parse reads a command line as podd run does.
func parse(t *testing.T, args ...string) Flags {
	t.Helper()
	f, err := tryParse(args...)
	if err != nil {
		t.Fatalf("parsing %q: %v", args, err)
	}
	return f
}

func tryParse(args ...string) (Flags, error) {
	var f Flags
	k, err := kong.New(&f, kong.Exit(func(int) { panic("exit") }))
	if err != nil {
		return f, err
	}
	alone := map[string]bool{}
	var names []string
	for _, flag := range k.Model.Flags {
		alone[flag.Name] = flag.IsBool()
		names = append(names, flag.Name)
	}
	rest, known, err := Args(args, func(name string) (bool, bool) { a, ok := alone[name]; return a, ok }, names)
	if err != nil {
		return f, err
	}
	_, err = k.Parse(rest)
	f.Known = known
	return f, err
}
