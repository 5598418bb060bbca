package main

import (
	"context"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// choices are the words that may stand where the cursor is, whatever they begin
// with.
func (l *typed) choices(ctx context.Context) []choice {
	switch {
	case l.verb == nil:
		return l.verbs()
	case l.awaited != nil:
		return l.values(ctx, l.awaited.Value)
	case strings.HasPrefix(l.begun, "-") && !l.plain:
		return l.flagNames()
	}
	arg := l.argument()
	if arg == nil {
		return nil
	}
	return l.values(ctx, arg)
}

func (l *typed) verbs() []choice {
	var all []choice
	for _, n := range l.app.Children {
		if !n.Hidden {
			all = append(all, choice{n.Name, n.Help})
		}
	}
	return append(all, choice{"help", "Tell the verbs, or one's flags."})
}

func (l *typed) flagNames() []choice {
	var all []choice
	for _, group := range l.verb.AllFlags(true) {
		for _, f := range group {
			if _, written := l.flags[f.Name]; !written || f.IsCumulative() {
				all = append(all, choice{"--" + f.Name, f.Help})
			}
		}
	}
	return all
}

// argument is the one that the cursor is at; nil: no more are taken.
func (l *typed) argument() *kong.Positional {
	all := l.verb.Positional
	switch n := len(l.args); {
	case n < len(all):
		return all[n]
	case len(all) > 0 && all[len(all)-1].IsCumulative():
		return all[len(all)-1]
	}
	return nil
}

// values are those of a flag or an argument: of its enum, or of what its tag
// complete names.
func (l *typed) values(ctx context.Context, v *kong.Value) []choice {
	var all []choice
	for _, word := range v.EnumSlice() {
		if word != "" {
			all = append(all, choice{word: word})
		}
	}
	if len(all) > 0 {
		return all
	}
	if v.Tag.Get("complete") == "" && v.Flag != nil && slices.Contains([]string{"FILE", "DIR", "PATH", "SOCKET"}, v.Flag.PlaceHolder) {
		return []choice{files}
	}
	n := &live{typed: l}
	for kind := range strings.SplitSeq(v.Tag.Get("complete"), ",") {
		if of, ok := namesOf[kind]; ok {
			all = append(all, of(ctx, n)...)
		}
	}
	return filter(all, func(c choice) bool { return !v.IsCumulative() || !slices.Contains(l.args, c.word) })
}
