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

// envLimit is the maximum size of an --env-file.
const envLimit = 1 << 20

// Env parses the variables for every container: first files, which contain a "K=V" a line
// and comments with #, then words. Later ones take precedence. As in docker, a K alone
// gets its value from lookup; if lookup has none, the variable is omitted and its name is
// returned in unset. Errors do not contain values.
func Env(files, words []string, lookup func(string) (string, bool)) (env []v1.EnvVar, unset []string, err error) {
	known := func(name string) (string, bool) {
		value, there := lookup(name)
		if !there && !slices.Contains(unset, name) {
			unset = append(unset, name)
		}
		return value, there
	}
	for _, name := range files {
		if err := envFile(name, known, &env); err != nil {
			return nil, nil, fmt.Errorf("reading --env-file %s: %w", name, err)
		}
	}
	for _, word := range words {
		if err := addEnv(word, known, &env); err != nil {
			return nil, nil, fmt.Errorf("reading -e: %w", err)
		}
	}
	return env, unset, nil
}

// envFile may be a pipe, for example from <(…) in a shell.
func envFile(name string, lookup func(string) (string, bool), all *[]v1.EnvVar) error {
	f, err := os.Open(name)
	if err != nil {
		return withoutPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, envLimit+1))
	if err != nil {
		return withoutPath(err)
	}
	if len(text) > envLimit {
		return errors.New("it is larger than 1 MiB")
	}
	lines := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(string(text), "\ufeff")))
	lines.Buffer(nil, envLimit+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), " \t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := addEnv(line, lookup, all); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// withoutPath removes the path from an error, because the caller's message contains it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func addEnv(word string, lookup func(string) (string, bool), all *[]v1.EnvVar) error {
	name, value, given := strings.Cut(word, "=")
	if !isEnvName(name) {
		if !given {
			return errors.New("want K=V, or the name of a variable that podd has")
		}
		return errors.New("what stands before = is no variable's name; want K=V")
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %s has a zero byte in it", name)
	}
	if !given {
		if value, given = lookup(name); !given {
			return nil
		}
	}
	*all = slices.DeleteFunc(*all, func(e v1.EnvVar) bool { return e.Name == name })
	*all = append(*all, v1.EnvVar{Name: name, Value: value})
	return nil
}

// isEnvName applies the rule of Kubernetes: printable ASCII.
func isEnvName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// WithEnv returns p with the variables in every container. Their values are not expanded.
// They replace variables of the manifest with the same name; new ones are inserted before
// those, which can then refer to them. p is not modified.
func WithEnv(p *manifest.Pod, env []v1.EnvVar) *manifest.Pod {
	if len(env) == 0 {
		return p
	}
	copied := *p
	copied.Spec = p.Spec.DeepCopy()
	for _, list := range [][]v1.Container{copied.Spec.Spec.InitContainers, copied.Spec.Spec.Containers} {
		for i := range list {
			list[i].Env = mergeEnv(list[i].Env, env)
		}
	}
	return &copied
}

func mergeEnv(have, env []v1.EnvVar) []v1.EnvVar {
	var added []v1.EnvVar
	have = slices.Clone(have)
	for _, e := range env {
		e.Value = strings.ReplaceAll(e.Value, "$", "$$")
		known := false
		for i := range have {
			if have[i].Name == e.Name {
				have[i], known = e, true
			}
		}
		if !known {
			added = append(added, e)
		}
	}
	return append(added, have...)
}
