package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/printer"
)

// A choice is a possible completion and its description.
type choice struct{ text, description string }

// fileNamesChoice is a special choice. The completion scripts replace fileNamesChoice by the names
// of files.
var fileNamesChoice = choice{text: ":files"}

// Complete prints the possible completions of a command line. The last argument may be incomplete.
// Each completion is printed on its own line, and may be followed by a tab and a description.
// Complete does not report failed requests, because the user is still typing. A failed request adds
// no completions.
func Complete(ctx context.Context, app *kong.Application, args []string, out io.Writer) error {
	if len(args) == 0 {
		args = []string{""}
	}
	l := parseCommandLine(app, args)
	var b strings.Builder
	for _, c := range l.choices(ctx) {
		switch {
		case c == fileNamesChoice:
			b.WriteString(c.text + "\n")
		case strings.HasPrefix(c.text, l.prefix):
			b.WriteString(strings.TrimSuffix(printer.Escape(l.beforePrefix+c.text)+"\t"+printer.Escape(c.description), "\t") + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// A commandLine is an incomplete command line.
type commandLine struct {
	app        *kong.Application
	verb       *kong.Node // nil until the verb is typed
	flags      map[string]string
	args       []string // arguments of the verb before the cursor
	flagsEnded bool     // "--" was typed, so no flags follow
	// pendingFlag is the flag before the value that the user is typing, or nil.
	pendingFlag *kong.Flag
	// prefix is the part of the last argument that choices must begin with. beforePrefix is the
	// part before prefix, such as "--output=". Choices do not contain beforePrefix.
	beforePrefix, prefix string
}

// parseCommandLine parses the arguments of a command line after podd. The last argument is
// incomplete.
func parseCommandLine(app *kong.Application, args []string) *commandLine {
	complete, incomplete := args[:len(args)-1], args[len(args)-1]
	l := &commandLine{app: app, flags: map[string]string{}, prefix: incomplete}
	for len(complete) > 0 && complete[0] == "help" {
		complete = complete[1:]
	}
	switch {
	case len(complete) > 0 && !strings.HasPrefix(complete[0], "-"):
		l.verb, complete = FindVerb(app, complete[0]), complete[1:]
		if l.verb == nil {
			l.verb = &kong.Node{} // an empty node, because an unknown verb has no flags and arguments
		}
	case len(complete) > 0 || strings.HasPrefix(incomplete, "-"):
		l.verb = FindVerb(app, "run")
	}
	if l.verb == nil {
		return l
	}
	for _, arg := range complete {
		l.add(arg)
	}
	if name, value, ok := strings.Cut(incomplete, "="); ok && l.pendingFlag == nil && !l.flagsEnded && strings.HasPrefix(name, "--") {
		if l.pendingFlag = l.findLongFlag(name[2:]); l.pendingFlag != nil {
			l.beforePrefix, l.prefix = name+"=", value
		}
	}
	return l
}

// add parses a complete argument.
func (l *commandLine) add(arg string) {
	switch {
	case l.pendingFlag != nil:
		l.flags[l.pendingFlag.Name], l.pendingFlag = arg, nil
	case l.flagsEnded || !strings.HasPrefix(arg, "-") || arg == "-":
		l.args = append(l.args, arg)
	case arg == "--":
		l.flagsEnded = true
	case strings.HasPrefix(arg, "--"):
		name, value, hasValue := strings.Cut(arg[2:], "=")
		if f := l.findLongFlag(name); f != nil && hasValue {
			l.flags[f.Name] = value
		} else if f != nil && !f.IsBool() {
			l.pendingFlag = f
		}
	default:
		l.addShortFlags(arg[1:])
	}
}

// addShortFlags parses the letters of short flags: "it" for -it, and "nshop" or "n=shop" for a
// flag with a value.
func (l *commandLine) addShortFlags(letters string) {
	for i, letter := range letters {
		f := l.findShortFlag(letter)
		switch value := letters[i+len(string(letter)):]; {
		case f == nil:
			return
		case f.IsBool():
		case value == "":
			l.pendingFlag = f
			return
		default:
			l.flags[f.Name] = strings.TrimPrefix(value, "=")
			return
		}
	}
}

// findLongFlag returns the flag with a long name, or nil if the verb has no such flag.
func (l *commandLine) findLongFlag(name string) *kong.Flag {
	return l.findFlag(func(f *kong.Flag) bool { return f.Name == strings.ReplaceAll(name, "_", "-") })
}

// findShortFlag returns the flag with a short name, which is a letter, or nil if the verb has no such
// flag.
func (l *commandLine) findShortFlag(letter rune) *kong.Flag {
	return l.findFlag(func(f *kong.Flag) bool { return f.Short == letter })
}

// findFlag returns the first flag of the verb for which the function matches returns true, or nil
// if there is none.
func (l *commandLine) findFlag(matches func(*kong.Flag) bool) *kong.Flag {
	for _, group := range l.verb.AllFlags(true) {
		for _, f := range group {
			if matches(f) {
				return f
			}
		}
	}
	return nil
}

// FindVerb returns the verb with a name, or nil if there is none.
func FindVerb(app *kong.Application, name string) *kong.Node {
	i := slices.IndexFunc(app.Children, func(n *kong.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return app.Children[i]
}
