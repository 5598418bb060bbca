package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// completeVerb is what shells ask; its words are those of a command line behind
// podd's name, the last of them as far as it is written.
const completeVerb = "__complete"

// completeTime bounds the wait for names: somebody's finger is on the key.
const completeTime = time.Second

// choice is a word that may stand where the cursor is, and what it means.
type choice struct{ word, meaning string }

// files stands for the names of files, which the shell knows.
var files = choice{word: ":files"}

// completeWord prints the choices, a line each with a tab before its meaning. It
// fails never, and says nothing where nothing is known.
func completeWord(ctx context.Context, app *kong.Application, words []string, s Streams) error {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	if len(words) == 0 {
		words = []string{""}
	}
	l := newTyped(app, words)
	var b strings.Builder
	for _, c := range l.choices(ctx) {
		switch {
		case c == files:
			b.WriteString(c.word + "\n")
		case strings.HasPrefix(c.word, l.begun):
			b.WriteString(strings.TrimSuffix(plain(l.before+c.word)+"\t"+plain(c.meaning), "\t") + "\n")
		}
	}
	_, err := io.WriteString(s.Out, b.String())
	return err
}

// typed is a command line, as far as it is written.
type typed struct {
	app   *kong.Application
	verb  *kong.Node // nil: none is written yet
	flags map[string]string
	args  []string // the verb's arguments so far
	plain bool     // "--" was written: no flags come any more
	// awaited is the flag whose value is being written; nil: none.
	awaited *kong.Flag
	// begun is the word as far as it is written, without what stands before and
	// is no part of the choice: "--output=".
	before, begun string
}

func newTyped(app *kong.Application, words []string) *typed {
	done, last := words[:len(words)-1], words[len(words)-1]
	l := &typed{app: app, flags: map[string]string{}, begun: last}
	for len(done) > 0 && done[0] == "help" {
		done = done[1:]
	}
	switch {
	case len(done) > 0 && !strings.HasPrefix(done[0], "-"):
		l.verb, done = findVerb(app, done[0]), done[1:]
		if l.verb == nil {
			l.verb = &kong.Node{} // which takes nothing
		}
	case len(done) > 0 || strings.HasPrefix(last, "-"):
		l.verb = findVerb(app, "run")
	}
	if l.verb == nil {
		return l
	}
	for _, word := range done {
		l.take(word)
	}
	if name, value, ok := strings.Cut(last, "="); ok && l.awaited == nil && !l.plain && strings.HasPrefix(name, "--") {
		if l.awaited = l.flag(name[2:]); l.awaited != nil {
			l.before, l.begun = name+"=", value
		}
	}
	return l
}

// take is a word that is written.
func (l *typed) take(word string) {
	switch {
	case l.awaited != nil:
		l.flags[l.awaited.Name], l.awaited = word, nil
	case l.plain || !strings.HasPrefix(word, "-") || word == "-":
		l.args = append(l.args, word)
	case word == "--":
		l.plain = true
	case strings.HasPrefix(word, "--"):
		name, value, whole := strings.Cut(word[2:], "=")
		if f := l.flag(name); f != nil && whole {
			l.flags[f.Name] = value
		} else if f != nil && !f.IsBool() {
			l.awaited = f
		}
	default:
		l.takeShort(word[1:])
	}
}

// takeShort is "it" of -it, "nshop" or "n=shop" of a flag with a value.
func (l *typed) takeShort(letters string) {
	for i, letter := range letters {
		f := l.short(letter)
		switch rest := letters[i+len(string(letter)):]; {
		case f == nil:
			return
		case f.IsBool():
		case rest == "":
			l.awaited = f
			return
		default:
			l.flags[f.Name] = strings.TrimPrefix(rest, "=")
			return
		}
	}
}

func (l *typed) flag(name string) *kong.Flag {
	return l.findFlag(func(f *kong.Flag) bool { return f.Name == strings.ReplaceAll(name, "_", "-") })
}

func (l *typed) short(letter rune) *kong.Flag {
	return l.findFlag(func(f *kong.Flag) bool { return f.Short == letter })
}

func (l *typed) findFlag(is func(*kong.Flag) bool) *kong.Flag {
	for _, group := range l.verb.AllFlags(true) {
		for _, f := range group {
			if is(f) {
				return f
			}
		}
	}
	return nil
}
