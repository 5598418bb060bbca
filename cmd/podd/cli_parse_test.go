package main

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"podd/cmd/podd/internal/commandline"
	"podd/cmd/podd/internal/iostreams"
)

// TestParse_LikeKong checks that commandline.Parse returns the values, errors and help of
// Kong.Parse for random command lines of every verb.
func TestParse_LikeKong(t *testing.T) {
	all := reflect.TypeFor[verbs]()
	for i := range all.NumField() {
		t.Run(all.Field(i).Name, func(t *testing.T) {
			grammar := reflect.StructOf([]reflect.StructField{all.Field(i)}) // a grammar with one verb, because it is parsed faster
			rapid.Check(t, func(t *rapid.T) {
				here, theirs := newParsed(t, grammar), newParsed(t, grammar)
				words := drawWords(t, here.verb)
				here.parse(words, parseHere)
				theirs.parse(words, parseWithKong)
				if here.err != theirs.err {
					t.Errorf("error of %q:\n got %s\nwant %s", words, here.err, theirs.err)
				}
				if got, want := here.out.String(), theirs.out.String(); got != want {
					t.Errorf("help of %q (-want +got):\n%s", words, cmp.Diff(want, got))
				}
				got, want := here.verb.Target.Interface(), theirs.verb.Target.Interface()
				if here.err == "" && here.out.Len() == 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("values of %q:\n got %+v\nwant %+v", words, got, want)
				}
			})
		})
	}
}

// parsed is a parser and the result of parsing a command line with it.
type parsed struct {
	parser *kong.Kong
	verb   *kong.Node
	err    string
	out    bytes.Buffer
}

// newParsed returns the parser of a grammar with one verb.
func newParsed(t *rapid.T, grammar reflect.Type) *parsed {
	p := &parsed{}
	var err error
	if p.parser, err = newParser(reflect.New(grammar).Interface(), iostreams.Streams{Out: &p.out, Err: &p.out}); err != nil {
		t.Fatal(err)
	}
	p.verb = p.parser.Model.Children[0]
	return p
}

func (p *parsed) parse(words []string, parse func(*kong.Kong, []string) error) {
	if err := parse(p.parser, words); err != nil {
		p.err = err.Error()
	}
}

func parseHere(k *kong.Kong, words []string) error {
	ctx, err := commandline.Parse(k, words)
	if errors.Is(err, commandline.ErrHelp) {
		return verbHelp{ctx}.Run(context.Background(), iostreams.Streams{})
	}
	return err
}

// parseWithKong calls Kong.Parse, which calls Exit after it has printed help.
func parseWithKong(k *kong.Kong, words []string) (err error) {
	exited := errors.New("exited")
	defer func() {
		if r := recover(); r != nil && r != any(exited) {
			panic(r)
		}
	}()
	k.Exit = func(int) { panic(exited) }
	_, err = k.Parse(words)
	return err
}

// drawWords returns a random command line of a verb, which may be invalid.
func drawWords(t *rapid.T, verb *kong.Node) []string {
	var flags []*kong.Flag
	for _, group := range verb.AllFlags(false) {
		flags = append(flags, group...)
	}
	value := func(v *kong.Value) string {
		some := []string{"", "x", "1", "-1", "30s", "true", "a=b", "a,b"}
		if v.Enum != "" {
			some = append(some, v.EnumSlice()...)
		}
		return rapid.SampledFrom(some).Draw(t, "value")
	}
	words := []string{verb.Name}
	for range rapid.IntRange(0, 4).Draw(t, "words") {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2, 3:
			f := rapid.SampledFrom(flags).Draw(t, "flag")
			if f.Name == "help" && rapid.IntRange(0, 4).Draw(t, "help") > 0 {
				continue // --help would hide the effect of all other words
			}
			word := "--" + f.Name
			if f.Short != 0 && rapid.Bool().Draw(t, "short") {
				word = "-" + string(f.Short)
			}
			switch {
			case f.IsBool() && rapid.Bool().Draw(t, "alone"):
				words = append(words, word)
			case rapid.Bool().Draw(t, "separate"):
				words = append(words, word, value(f.Value))
			default:
				words = append(words, word+"="+value(f.Value))
			}
		case 4, 5, 6, 7:
			if len(verb.Positional) == 0 {
				words = append(words, "x")
				continue
			}
			words = append(words, value(rapid.SampledFrom(verb.Positional).Draw(t, "argument")))
		case 8:
			words = append(words, "--")
		case 9:
			words = append(words, rapid.SampledFrom([]string{"--unknown", "-Z", "--no-attach", "-", "--name-space=x"}).Draw(t, "other"))
		}
	}
	return words
}

// TestGrammar_ForParse checks that the verbs use only the features of kong that
// commandline.Parse supports.
func TestGrammar_ForParse(t *testing.T) {
	k, err := newParser(newVerbs(), streams())
	if err != nil {
		t.Fatal(err)
	}
	hooks := []string{"BeforeReset", "BeforeResolve", "BeforeApply", "AfterApply", "AfterRun"}
	noHooks := func(name string, target reflect.Value) {
		for _, hook := range hooks {
			if target.Addr().MethodByName(hook).IsValid() {
				t.Errorf("%s has the hook %s, which Parse does not call", name, hook)
			}
		}
	}
	noHooks("the grammar", k.Model.Target)
	for _, verb := range k.Model.Children {
		noHooks(verb.Name, verb.Target)
		if len(verb.Children) > 0 || verb.Argument != nil {
			t.Errorf("podd %s has subcommands, which Parse does not check", verb.Name)
		}
		if _, ok := verb.Target.Addr().Interface().(interface{ Validate() error }); ok {
			t.Errorf("podd %s: Validate has no parameter, so that Parse does not call it", verb.Name)
		}
		for _, v := range verb.Values() {
			name := verb.Name + " " + v.ShortSummary()
			if v.Flag == nil || v.Flag != k.Model.HelpFlag {
				noHooks(name, v.Target)
			}
			switch target := v.Target.Addr().Interface().(type) {
			case interface{ Validate() error }, commandline.Validator:
				t.Errorf("%s: Parse does not call Validate of %T", name, target)
			}
			if v.Enum != "" && v.Target.Kind() != reflect.String {
				t.Errorf("%s: Parse checks the enum tag only of strings, got %s", name, v.Target.Type())
			}
			if v.Required && (len(v.Tag.Envs) > 0 || v.Enum != "" && v.HasDefault) {
				t.Errorf("%s: a required value has an env or default tag, which Parse does not check", name)
			}
			if f := v.Flag; f != nil && (len(f.And) > 0 || len(f.LastWins) > 0 || f.Required && len(f.Xor) > 0) {
				t.Errorf("%s: Parse does not support the tags and and lastwins, and xor with required", name)
			}
		}
	}
}
