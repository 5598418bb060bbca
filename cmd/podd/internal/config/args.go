package config

import (
	"errors"
	"fmt"
	"strings"

	"podd/manifest/wording"
)

// NormalizeArgs splits a command line into arguments for kong (rest) and flags that only the
// kubelet has (unserved). If neither kong nor the kubelet has one of the flags, NormalizeArgs
// returns an error that suggests a similar name.
//
// In rest, the names of long flags contain - instead of _. "-v=2" is replaced by "-v2". "--flag
// value" is replaced by "--flag=value", because a value may begin with a dash, as in the kubelet.
// Arguments after "--" are not changed.
//
// names contains the names of kong's flags. lookup reports whether kong has a flag (ok), and
// whether that flag takes no value (noValue).
func NormalizeArgs(args []string, lookup func(name string) (noValue, ok bool), names []string) (rest []string, unserved []UnsupportedFlag, err error) {
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
		kubeletFlag, isKubeletFlag := findKubeletFlag(name)
		noValue, isServed := lookup(name)
		switch {
		case !isServed && !isKubeletFlag:
			errs = append(errs, newUnknownFlagError(name, names))
			continue
		case !isServed:
			noValue = kubeletFlag.format == booleanFormat
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
		flag, err := kubeletFlag.parse(value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		unserved = addUnsupported(unserved, flag)
	}
	return rest, unserved, errors.Join(errs...)
}

// splitFlag splits a long flag into its name, with - instead of _, and its value. hasValue
// reports whether the argument contains a value. isFlag is false for short flags and for
// arguments that are not flags.
func splitFlag(arg string) (name, value string, hasValue, isFlag bool) {
	body, ok := strings.CutPrefix(arg, "--")
	if !ok || body == "" {
		return "", "", false, false
	}
	name, value, hasValue = strings.Cut(body, "=")
	return strings.ReplaceAll(name, "_", "-"), value, hasValue, true
}

// fixShortFlag replaces "-v=2" by "-v2", because kong does not accept the first form. The
// kubelet accepts both forms.
func fixShortFlag(arg string) string {
	if len(arg) > 3 && arg[0] == '-' && arg[2] == '=' {
		return arg[:2] + arg[3:]
	}
	return arg
}

// formatFlag returns "--name=value", or "--name" if hasValue is false.
func formatFlag(name, value string, hasValue bool) string {
	if !hasValue {
		return "--" + name
	}
	return "--" + name + "=" + value
}

// newUnknownFlagError returns an error that suggests the flag with the most similar name.
// names contains the names of kong's flags.
func newUnknownFlagError(name string, names []string) error {
	all := append([]string(nil), names...)
	for _, f := range kubeletFlags {
		all = append(all, f.name)
	}
	if near := wording.FindClosest(name, all); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Errorf("unknown flag --%s", name)
}
