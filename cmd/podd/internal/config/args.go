package config

import (
	"errors"
	"fmt"
	"strings"
)

// Args prepares a command line for the parser. It replaces _ by - in the names of long
// flags, "-v=2" by "-v2", and "--flag value" by "--flag=value", because a value may begin
// with a dash, as in the kubelet. Flags of the kubelet that podd does not serve are
// returned in known. Arguments after "--" are not changed.
//
// served reports whether the parser has a flag, and whether that takes no value. A flag
// that is neither served nor known is an error that suggests a similar name.
// error that says what was probably meant.
func Args(args []string, served func(name string) (alone, ok bool), names []string) (rest []string, known []Known, err error) {
	var errs []error
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			rest = append(append(rest, arg), args...)
			break
		}
		name, value, hasValue, isFlag := splitFlag(arg)
		if !isFlag {
			rest = append(rest, shortFlag(arg))
			continue
		}
		row, isKnown := findKnown(name)
		alone, isServed := served(name)
		switch {
		case !isServed && !isKnown:
			errs = append(errs, unknownFlag(name, names))
			continue
		case !isServed:
			alone = row.shape == boolean
		}
		if !hasValue && !alone {
			if len(args) == 0 {
				errs = append(errs, fmt.Errorf("--%s: a value is missing", name))
				continue
			}
			value, hasValue, args = args[0], true, args[1:]
		}
		if isServed {
			rest = append(rest, assemble(name, value, hasValue))
			continue
		}
		if !hasValue {
			value = "true"
		}
		k, err := row.take(value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known = add(known, k)
	}
	return rest, known, errors.Join(errs...)
}

// splitFlag splits a long flag. Short flags and other words are not flags.
func splitFlag(arg string) (name, value string, hasValue, isFlag bool) {
	body, ok := strings.CutPrefix(arg, "--")
	if !ok || body == "" {
		return "", "", false, false
	}
	name, value, hasValue = strings.Cut(body, "=")
	return strings.ReplaceAll(name, "_", "-"), value, hasValue, true
}

// shortFlag replaces "-v=2" by "-v2", which the kubelet treats alike.
func shortFlag(arg string) string {
	if len(arg) > 3 && arg[0] == '-' && arg[2] == '=' {
		return arg[:2] + arg[3:]
	}
	return arg
}

func assemble(name, value string, hasValue bool) string {
	if !hasValue {
		return "--" + name
	}
	return "--" + name + "=" + value
}

func unknownFlag(name string, served []string) error {
	all := append([]string(nil), served...)
	for _, f := range knownFlags {
		all = append(all, f.name)
	}
	if near := Nearest(name, all); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Errorf("unknown flag --%s", name)
}
