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

// TestParse_LikeKong checks that commandline.Parse returns the same values, errors and help as
// Kong.Parse, for random command lines of every verb.
func TestParse_LikeKong(t *testing.T) {
	all := reflect.TypeFor[verbs]()
	for i := range all.NumField() {
		t.Run(all.Field(i).Name, func(t *testing.T) {
			grammar := reflect.StructOf([]reflect.StructField{all.Field(i)}) // one verb, because kong reads a small grammar faster
			rapid.Check(t, func(t *rapid.T) {
				podds, kongs := newVerbParser(t, grammar), newVerbParser(t, grammar)
				words := drawWords(t, podds.verb)
				podds.parse(words, parseWithPodd)
				kongs.parse(words, parseWithKong)
				if podds.err != kongs.err {
					t.Errorf("error of %q:\n got %q\nwant %q", words, podds.err, kongs.err)
				}
				if got, want := podds.help.String(), kongs.help.String(); got != want {
					t.Errorf("help of %q (-want +got):\n%s", words, cmp.Diff(want, got))
				}
				got, want := podds.verb.Target.Interface(), kongs.verb.Target.Interface()
				if podds.err == "" && podds.help.Len() == 0 && !reflect.DeepEqual(got, want) {
					t.Errorf("values of %q:\n got %+v\nwant %+v", words, got, want)
				}
			})
		})
	}
}

// A verbParser parses a command line with the grammar of one verb and stores the result.
type verbParser struct {
	parser *kong.Kong
	verb   *kong.Node   // contains the parsed values
	err    string       // error of parsing; "" if there is none
	help   bytes.Buffer // empty unless the command line contains --help
}

// newVerbParser returns a parser for grammar, a struct type with one verb.
func newVerbParser(t *rapid.T, grammar reflect.Type) *verbParser {
	p := &verbParser{}
	var err error
	if p.parser, err = newParser(reflect.New(grammar).Interface(), iostreams.Streams{Out: &p.help, Err: &p.help}); err != nil {
		t.Fatal(err)
	}
	p.verb = p.parser.Model.Children[0]
	return p
}

// parse calls parseWords, which is parseWithPodd or parseWithKong, and stores its error.
func (p *verbParser) parse(words []string, parseWords func(*kong.Kong, []string) error) {
	if err := parseWords(p.parser, words); err != nil {
		p.err = err.Error()
	}
}

// parseWithPodd calls commandline.Parse. If words contain --help, it prints the help as podd does.
func parseWithPodd(k *kong.Kong, words []string) error {
	ctx, err := commandline.Parse(k, words)
	if errors.Is(err, commandline.ErrHelp) {
		return verbHelp{ctx}.Run(context.Background(), iostreams.Streams{})
	}
	return err
}

// parseWithKong calls Kong.Parse. After printing help, Kong.Parse calls k.Exit; parseWithKong then
// returns nil.
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
				continue // draw --help rarely, because with --help Parse ignores the values of all other words
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
	checkNoHooks := func(name string, target reflect.Value) {
		for _, hook := range hooks {
			if target.Addr().MethodByName(hook).IsValid() {
				t.Errorf("%s has the hook %s, which Parse does not call", name, hook)
			}
		}
	}
	checkNoHooks("the grammar", k.Model.Target)
	for _, verb := range k.Model.Children {
		checkNoHooks(verb.Name, verb.Target)
		if len(verb.Children) > 0 || verb.Argument != nil {
			t.Errorf("podd %s has subcommands, which Parse does not support", verb.Name)
		}
		if _, ok := verb.Target.Addr().Interface().(interface{ Validate() error }); ok {
			t.Errorf("podd %s: Parse does not call Validate(); implement commandline.Validator, whose Validate has a parameter", verb.Name)
		}
		for _, v := range verb.Values() {
			name := verb.Name + " " + v.ShortSummary()
			if v.Flag == nil || v.Flag != k.Model.HelpFlag {
				checkNoHooks(name, v.Target)
			}
			switch target := v.Target.Addr().Interface().(type) {
			case interface{ Validate() error }, commandline.Validator:
				t.Errorf("%s has the type %T with a method Validate; Parse calls only Validate of verbs", name, target)
			}
			if v.Enum != "" && v.Target.Kind() != reflect.String {
				t.Errorf("%s has an enum tag and the type %s; Parse checks the enum tag only of strings", name, v.Target.Type())
			}
			if v.Required && (len(v.Tag.Envs) > 0 || v.Enum != "" && v.HasDefault) {
				t.Errorf("%s is required and has an env tag, or an enum tag with a default; Parse supports neither combination", name)
			}
			if f := v.Flag; f != nil && (len(f.And) > 0 || len(f.LastWins) > 0 || f.Required && len(f.Xor) > 0) {
				t.Errorf("%s has the tag \"and\" or \"lastwins\", or both \"xor\" and \"required\"; Parse does not support these tags", name)
			}
		}
	}
}
