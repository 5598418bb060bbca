// Package commandline parses the command line of a verb with a kong grammar.
//
// Parse does the same as Kong.Parse, except that it calls no hooks such as BeforeApply. kong finds
// hooks with reflect.Value.MethodByName and a variable name. A program that contains such a call
// contains every exported method of every type, because the linker cannot know which methods are
// called. In podd these methods are several megabytes.
//
// Kong.Parse consists of Trace, Reset, Apply and Validate of kong.Context. Validate contains the
// call of MethodByName, too. Therefore this package checks flags and arguments itself. A test in
// cmd/podd compares Parse with Kong.Parse for all verbs.
package commandline

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// ErrHelp is the error of Parse if the command line contains --help.
var ErrHelp = errors.New("help requested")

// A MissingArgumentsError is the error of Parse if required arguments are missing. Its message is that
// of kong.
type MissingArgumentsError struct{ Arguments string } // such as "<pod> <command> ..."

func (e MissingArgumentsError) Error() string { return fmt.Sprintf("expected %q", e.Arguments) }

// An InvalidChoiceError is the error of Parse if a flag or an argument has a value that its enum tag
// does not contain. Its message is that of kong.
type InvalidChoiceError struct {
	Name    string   // such as "--output" or "<shell>"
	Value   string   // the invalid value
	Choices []string // the valid values; "" is the default of an optional flag
}

func (e InvalidChoiceError) Error() string {
	quoted := make([]string, len(e.Choices))
	for i, choice := range e.Choices {
		quoted[i] = strconv.Quote(choice)
	}
	return fmt.Sprintf("%s must be one of %s but got %q", e.Name, strings.Join(quoted, ","), e.Value)
}

// A Validator is a verb with checks that its tags cannot express. The method Validate must not use
// its parameter. The parameter exists so that the method has another signature than
// kong.Context.Validate. With the same signature, a call through this interface would make the
// linker include kong.Context.Validate.
type Validator interface {
	Validate(*kong.Context) error
}

// Parse parses words and sets the fields of the grammar of k. The first word must be the name of
// a verb. If words contain --help, Parse returns ErrHelp and a Context that can print the help;
// the fields are then not set. With any other error the Context is nil.
func Parse(k *kong.Kong, words []string) (*kong.Context, error) {
	ctx, err := kong.Trace(k, words)
	if err != nil {
		return nil, err
	}
	if ctx.Error != nil {
		return nil, ctx.Error
	}
	if slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag == k.Model.HelpFlag }) {
		return ctx, ErrHelp
	}
	if err := ctx.Reset(); err != nil {
		return nil, err
	}
	if _, err := ctx.Apply(); err != nil {
		return nil, err
	}
	if err := validate(ctx); err != nil {
		return nil, err
	}
	return ctx, nil
}

// validate checks the flags and arguments of the selected verb in the order of kong's
// Context.Validate and returns the first error. It supports the tags that podd's verbs use:
// enum for strings, required for flags, optional and xor.
func validate(ctx *kong.Context) error {
	verb := ctx.Selected()
	for _, v := range verb.Values() {
		if v.Enum != "" && !v.Required {
			if err := checkEnum(v); err != nil {
				return err
			}
		}
	}
	if v, ok := verb.Target.Addr().Interface().(Validator); ok {
		if err := v.Validate(ctx); err != nil {
			return fmt.Errorf("%s: %w", verb.Path(), err)
		}
	}
	if missing := missingFlags(verb); len(missing) > 0 {
		return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
	}
	for _, v := range verb.Values() {
		if v.Enum != "" && v.Set {
			if err := checkEnum(v); err != nil {
				return err
			}
		}
	}
	if missing := missingArguments(verb); len(missing) > 0 {
		return MissingArgumentsError{strings.Join(missing, " ")}
	}
	return checkExclusive(verb)
}

// checkEnum returns an InvalidChoiceError if the value is not in its enum tag.
func checkEnum(v *kong.Value) error {
	value, choices := v.Target.String(), v.EnumSlice()
	if slices.Contains(choices, value) {
		return nil
	}
	return InvalidChoiceError{Name: v.ShortSummary(), Value: value, Choices: choices}
}

// missingFlags returns the required flags that are not set, sorted.
func missingFlags(verb *kong.Node) (missing []string) {
	for _, f := range verb.Flags {
		if f.Required && !f.Set {
			missing = append(missing, f.Summary())
		}
	}
	slices.Sort(missing)
	return missing
}

// missingArguments returns the required arguments that are not set.
func missingArguments(verb *kong.Node) (missing []string) {
	for _, a := range verb.Positional {
		if a.Required && !a.Set {
			missing = append(missing, a.Summary())
		}
	}
	return missing
}

// checkExclusive returns an error if two flags with the same xor tag are set.
func checkExclusive(verb *kong.Node) error {
	flagByTag := map[string]*kong.Flag{} // the flag that is set, by xor tag
	for _, f := range verb.Flags {
		if !f.Set {
			continue
		}
		for _, group := range f.Xor {
			if otherFlag := flagByTag[group]; otherFlag != nil {
				return fmt.Errorf("--%s and --%s can't be used together", otherFlag.Name, f.Name)
			}
			flagByTag[group] = f
		}
	}
	return nil
}
