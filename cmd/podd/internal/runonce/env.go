package runonce

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// maxEnvFileBytes is the maximum size of an --env-file.
const maxEnvFileBytes = 1 << 20

// parseEnv returns the variables for every container. It first parses files, and then the K=V
// arguments in args; later variables take precedence. A file contains one "K=V" per line, and
// comments that begin with #. As in docker, a line or argument K without "=" sets K to the result
// of lookup. If lookup returns false, parseEnv omits the variable and adds its name to the result
// unset. Errors do not contain the values of variables.
func parseEnv(files, args []string, lookup func(string) (string, bool)) (env []v1.EnvVar, unset []string, err error) {
	recordUnset := func(name string) (string, bool) {
		value, isSet := lookup(name)
		if !isSet && !slices.Contains(unset, name) {
			unset = append(unset, name)
		}
		return value, isSet
	}
	for _, name := range files {
		if err := addEnvFile(name, recordUnset, &env); err != nil {
			return nil, nil, fmt.Errorf("reading --env-file %s: %w", name, err)
		}
	}
	for _, arg := range args {
		if err := addEnv(arg, recordUnset, &env); err != nil {
			return nil, nil, fmt.Errorf("parsing the environment variable of -e: %w", err)
		}
	}
	return env, unset, nil
}

// addEnvFile adds the variables of a file, which may be a pipe, for example from <(…) in a
// shell.
func addEnvFile(name string, lookup func(string) (string, bool), vars *[]v1.EnvVar) error {
	f, err := os.Open(name)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFileBytes+1))
	if err != nil {
		return withoutPath(err)
	}
	if len(text) > maxEnvFileBytes {
		return errors.New("the file is larger than 1 MiB")
	}
	lines := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	lines.Buffer(nil, maxEnvFileBytes+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := addEnv(line, lookup, vars); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// withoutPath removes the path from an error, because the message of the caller contains
// the path.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// addEnv adds a variable to vars. definition is K=V or K. addEnv replaces an earlier variable with
// the same name. If definition is K and lookup finds no value, addEnv adds nothing.
func addEnv(definition string, lookup func(string) (string, bool), vars *[]v1.EnvVar) error {
	name, value, hasValue := strings.Cut(definition, "=")
	if !isEnvName(name) {
		if !hasValue {
			return errors.New("invalid variable name; write K=V, or K to pass on a variable of podd's environment")
		}
		return errors.New("invalid variable name before the equals sign; write K=V")
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of variable %s contains a NUL byte", name)
	}
	if !hasValue {
		if value, hasValue = lookup(name); !hasValue {
			return nil
		}
	}
	*vars = slices.DeleteFunc(*vars, func(e v1.EnvVar) bool { return e.Name == name })
	*vars = append(*vars, v1.EnvVar{Name: name, Value: value})
	return nil
}

// isEnvName reports whether name is valid in Kubernetes: printable ASCII without spaces.
func isEnvName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// podWithEnv returns a copy of p with the variables env in every container. The values of env are
// not expanded. A variable of env replaces the manifest's variable with the same name. Other
// variables of env are inserted before the manifest's variables, which can then refer to them.
func podWithEnv(p *manifest.Pod, env []v1.EnvVar) *manifest.Pod {
	if len(env) == 0 {
		return p
	}
	podCopy := *p
	podCopy.Object = p.Object.DeepCopy()
	for _, list := range [][]v1.Container{podCopy.Object.Spec.InitContainers, podCopy.Object.Spec.Containers} {
		for i := range list {
			list[i].Env = mergeEnv(list[i].Env, env)
		}
	}
	return &podCopy
}

// mergeEnv adds the variables in env to the variables in existing and returns the result. A
// variable in env replaces the variable with the same name. mergeEnv escapes the values of env, so
// that they are not expanded.
func mergeEnv(existing, env []v1.EnvVar) []v1.EnvVar {
	var newVars []v1.EnvVar
	existing = slices.Clone(existing)
	for _, e := range env {
		e.Value = strings.ReplaceAll(e.Value, "$", "$$")
		isReplaced := false
		for i := range existing {
			if existing[i].Name == e.Name {
				existing[i], isReplaced = e, true
			}
		}
		if !isReplaced {
			newVars = append(newVars, e)
		}
	}
	return append(newVars, existing...)
}
