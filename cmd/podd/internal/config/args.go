package config

import (
	"errors"
	"fmt"
	"strings"

	"podd/manifest/wording"
)

// NormalizeArgs splits a command line into arguments for kong (kongArgs) and flags that only the
// kubelet or an earlier kubelet has (unsupported). If neither kong nor a kubelet has one of the flags,
// NormalizeArgs returns an error that suggests a flag with a similar name.
//
// A renamed flag is added to unsupported under its former name, and treated like the flag with its
// current name. In kongArgs, the names of long flags contain - instead of _. "-v=2" is replaced by
// "-v2". "--flag value" is replaced by "--flag=value", because a value may begin with a dash, as in
// the kubelet. Arguments after "--" are not changed.
//
// names contains the names of kong's flags. lookup reports whether kong has a flag (ok), and
// whether that flag takes no value (noValue). The name of a short flag begins with "-".
func NormalizeArgs(args []string, lookup func(name string) (noValue, ok bool), names []string) (kongArgs []string, unsupported []UnsupportedFlag, err error) {
	n := &normalizer{args: args, lookup: lookup, names: names}
	var errs []error
	for len(n.args) > 0 {
		arg := n.next()
		if arg == "--" {
			n.kongArgs = append(append(n.kongArgs, arg), n.args...)
			break
		}
		if err := n.normalize(arg); err != nil {
			errs = append(errs, err)
		}
	}
	return n.kongArgs, n.unsupported, errors.Join(errs...)
}

// A normalizer is the state of NormalizeArgs.
type normalizer struct {
	args        []string // remaining arguments
	lookup      func(name string) (noValue, ok bool)
	names       []string
	kongArgs    []string
	unsupported []UnsupportedFlag
}

// next removes the first of the remaining arguments and returns it.
func (n *normalizer) next() string {
	arg := n.args[0]
	n.args = n.args[1:]
	return arg
}

// normalize adds an argument to n.kongArgs or n.unsupported. If arg is a flag without its value, normalize
// also removes the value from n.args.
func (n *normalizer) normalize(arg string) error {
	writtenName, value, hasValue, isFlag := splitFlag(arg)
	if !isFlag {
		if noValue, isShortFlag := n.lookup(arg); isShortFlag && !noValue && len(n.args) == 0 {
			return fmt.Errorf("%s: a value is missing", arg)
		}
		n.kongArgs = append(n.kongArgs, fixShortFlag(arg))
		return nil
	}
	name := writtenName
	if currentName := renamedFlags[writtenName]; currentName != "" {
		n.unsupported = addUnsupported(n.unsupported, UnsupportedFlag{Name: writtenName})
		name = currentName
	}
	kubeletFlag, isKubeletFlag := findKubeletFlag(name)
	noValue, isServed := n.lookup(name)
	switch {
	case !isServed && !isKubeletFlag:
		return newUnknownFlagError(name, n.names)
	case !isServed:
		noValue = kubeletFlag.format == booleanFormat
	}
	if !hasValue && !noValue {
		if len(n.args) == 0 {
			return fmt.Errorf("--%s: a value is missing", writtenName)
		}
		value, hasValue = n.next(), true
	}
	if formerFractions[name] {
		var err error
		if value, err = removeFraction(value); err != nil {
			return fmt.Errorf("--%s: %w", writtenName, err)
		}
	}
	if isServed {
		n.kongArgs = append(n.kongArgs, formatFlag(name, value, hasValue))
		return nil
	}
	if !hasValue {
		value = "true"
	}
	flag, err := kubeletFlag.parse(value)
	if err != nil {
		return err
	}
	n.unsupported = addUnsupported(n.unsupported, flag)
	return nil
}

// splitFlag splits a long flag into its name, with - instead of _, and its value. hasValue
// reports whether the argument contains a value. isFlag is false for short flags, for invalid
// flags and for arguments that are not flags.
func splitFlag(arg string) (name, value string, hasValue, isFlag bool) {
	body, ok := strings.CutPrefix(arg, "--")
	if !ok || body == "" || body[0] == '-' { // kong reports "---flag" as unknown
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

// newUnknownFlagError returns an error that suggests the flag with the most similar name. It suggests
// no former flags of the kubelet. names contains the names of kong's flags.
func newUnknownFlagError(name string, names []string) error {
	flagNames := append([]string(nil), names...)
	for _, f := range kubeletFlags {
		flagNames = append(flagNames, f.name)
	}
	if near := wording.FindClosest(name, flagNames); near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Errorf("unknown flag --%s", name)
}
