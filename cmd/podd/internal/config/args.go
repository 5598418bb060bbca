package config

import (
	"errors"
	"fmt"
	"strings"

	"podd/manifest/wording"
)

// Args prepares a command line for kong. It replaces _ by - in the names of long flags,
// "-v=2" by "-v2", and "--flag value" by "--flag=value", because a value may begin with a
// dash, as in the kubelet. Flags of the kubelet that podd does not serve are returned in
// known, all other arguments in rest. Arguments after "--" are not changed.
//
// served reports whether kong has a flag (ok), and whether the flag takes no value. names
// contains the flags of kong. A flag that neither kong nor the kubelet has is an error that
// suggests a similar name.
func Args(args []string, served func(name string) (noValue, ok bool), names []string) (rest []string, known []Known, err error) {
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
			rest = append(rest, fixShortFlag(arg))
			continue
		}
		row, isKubeletFlag := findKubeletFlag(name)
		noValue, isServed := served(name)
		switch {
		case !isServed && !isKubeletFlag:
			errs = append(errs, unknownFlag(name, names))
			continue
		case !isServed:
			noValue = row.shape == boolean
		}
		if !hasValue && !noValue {
			if len(args) == 0 {
				errs = append(errs, fmt.Errorf("--%s: a value is missing", name))
				continue
			}
			value, hasValue, args = args[0], true, args[1:]
		}
		if isServed {
			rest = append(rest, formatFlag(name, value, hasValue))
			continue
		}
		if !hasValue {
			value = "true"
		}
		k, err := row.parse(value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known = addKnown(known, k)
	}
	return rest, known, errors.Join(errs...)
}

// splitFlag splits a long flag into its name and value. isFlag is false for short flags and
// other arguments.
func splitFlag(arg string) (name, value string, hasValue, isFlag bool) {
	body, ok := strings.CutPrefix(arg, "--")
	if !ok || body == "" {
		return "", "", false, false
	}
	name, value, hasValue = strings.Cut(body, "=")
	return strings.ReplaceAll(name, "_", "-"), value, hasValue, true
}

// fixShortFlag replaces "-v=2" by "-v2". The kubelet accepts both, kong only the second.
func fixShortFlag(arg string) string {
	if len(arg) > 3 && arg[0] == '-' && arg[2] == '=' {
		return arg[:2] + arg[3:]
	}
	return arg
}

func formatFlag(name, value string, hasValue bool) string {
	if !hasValue {
		return "--" + name
	}
	return "--" + name + "=" + value
}

// unknownFlag returns the error of an unknown flag.
func unknownFlag(name string, served []string) error {
	all := append([]string(nil), served...)
	for _, f := range kubeletFlags {
		all = append(all, f.name)
	}
	if near := wording.Closest(name, all); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Errorf("unknown flag --%s", name)
}
