package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// choices returns all words that are possible at the cursor. The caller selects the words that
// begin with the prefix.
func (l *commandLine) choices(ctx context.Context) []choice {
	switch {
	case l.verb == nil:
		return l.verbChoices()
	case l.pendingFlag != nil:
		return l.valueChoices(ctx, l.pendingFlag.Value)
	case strings.HasPrefix(l.prefix, "-") && !l.flagsEnded:
		return l.flagChoices()
	}
	arg := l.currentArgument()
	if arg == nil {
		return nil
	}
	return l.valueChoices(ctx, arg)
}

// verbChoices returns the verbs and the word "help".
func (l *commandLine) verbChoices() []choice {
	var choices []choice
	for _, n := range l.app.Children {
		if !n.Hidden {
			choices = append(choices, choice{n.Name, n.Help})
		}
	}
	return append(choices, choice{"help", "Help about any verb."})
}

// flagChoices returns the flags of the verb. It omits flags that are already set and cannot be
// repeated.
func (l *commandLine) flagChoices() []choice {
	var choices []choice
	for _, group := range l.verb.AllFlags(true) {
		for _, f := range group {
			if _, isSet := l.flags[f.Name]; !isSet || f.IsCumulative() {
				choices = append(choices, choice{"--" + f.Name, f.Help})
			}
		}
	}
	return choices
}

// currentArgument returns the positional argument at the cursor, or nil if the verb accepts no
// more arguments.
func (l *commandLine) currentArgument() *kong.Positional {
	positionals := l.verb.Positional
	switch n := len(l.args); {
	case n < len(positionals):
		return positionals[n]
	case len(positionals) > 0 && positionals[len(positionals)-1].IsCumulative():
		return positionals[len(positionals)-1]
	}
	return nil
}

// valueChoices returns the choices for a flag or argument. These are the values of its enum or,
// without an enum, the choices of the kinds in its "complete" tag. If a flag has neither, and its
// placeholder is FILE, DIR, PATH or SOCKET, the choices are the names of files.
func (l *commandLine) valueChoices(ctx context.Context, v *kong.Value) []choice {
	var choices []choice
	for _, value := range v.EnumSlice() {
		if value != "" {
			choices = append(choices, choice{text: value})
		}
	}
	if len(choices) > 0 {
		return choices
	}
	if v.Tag.Get("complete") == "" && v.Flag != nil && slices.Contains([]string{"FILE", "DIR", "PATH", "SOCKET"}, v.Flag.PlaceHolder) {
		return []choice{fileNamesChoice}
	}
	n := &completer{commandLine: l}
	for kind := range strings.SplitSeq(v.Tag.Get("complete"), ",") {
		if listKind, ok := choicesByKind[kind]; ok {
			choices = append(choices, listKind(ctx, n)...)
		}
	}
	return filter(choices, func(c choice) bool { return !v.IsCumulative() || !slices.Contains(l.args, c.text) })
}
