package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	credential "k8s.io/kubelet/config/v1"

	"podd/manifest"
	"podd/reconcile/pull/provider"
)

const providerKind = "CredentialProviderConfig"

// providerVersions are decoded alike, because fields that only v1 has are rejected in the
// others.
var providerVersions = []string{
	"kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1",
}

// parseProviders parses a CredentialProviderConfig. As in the kubelet, unknown and
// duplicate fields are errors.
func parseProviders(path string, data []byte) (*layer, []manifest.Problem) {
	l, problems := parseMapping(path, data)
	if l == nil {
		return nil, problems
	}
	version, _ := l.tree["apiVersion"].(string)
	kind, _ := l.tree["kind"].(string)
	if kind != providerKind || !slices.Contains(providerVersions, version) {
		return nil, []manifest.Problem{l.origin("kind").problem(manifest.Error, "", fmt.Sprintf(
			"apiVersion %q, kind %q; want apiVersion: %s, kind: %s", version, kind, providerVersions[0], providerKind))}
	}
	t := typing{layer: l}
	t.object(l.tree, reflect.TypeFor[credential.CredentialProviderConfig](), "")
	problems = append(problems, t.problems...)
	for i := range problems {
		problems[i].Severity = manifest.Error
		problems[i].Message = refused.Replace(problems[i].Message)
	}
	return l, problems
}

// refused turns the text of warnings about other files into that of errors.
var refused = strings.NewReplacer("repeated; the last one counts", "repeated", "unknown field, ignored", "unknown field")

// checkingProviders validates the plugins of one file like Kubernetes.
type checkingProviders struct {
	*providing
	layer *layer
}

func (c *checkingProviders) errorf(field, format string, args ...any) {
	c.problems = append(c.problems, c.layer.origin(field).problem(manifest.Error, field, fmt.Sprintf(format, args...)))
}

func (c *checkingProviders) provider(at string, p *credential.CredentialProvider) {
	c.name(join(at, "name"), p.Name)
	switch {
	case p.APIVersion == "":
		c.errorf(join(at, "apiVersion"), "required; one of %s", strings.Join(provider.APIVersions, ", "))
	case !slices.Contains(provider.APIVersions, p.APIVersion):
		c.errorf(join(at, "apiVersion"), "%q is not known; want one of %s", p.APIVersion, strings.Join(provider.APIVersions, ", "))
	}
	if len(p.MatchImages) == 0 {
		c.errorf(join(at, "matchImages"), "at least one is required")
	}
	for i, pattern := range p.MatchImages {
		if provider.CheckPattern(pattern) != nil {
			c.errorf(index(join(at, "matchImages"), i), "%q is no registry with an optional port and path, such as *.example.com:5000/team", pattern)
		}
	}
	switch d := p.DefaultCacheDuration; {
	case d == nil:
		c.errorf(join(at, "defaultCacheDuration"), "required; 0s keeps nothing")
	case d.Duration < 0:
		c.errorf(join(at, "defaultCacheDuration"), "%s is negative", d.Duration)
	}
	if p.TokenAttributes != nil {
		c.errorf(join(at, "tokenAttributes"), "refused: it gives the plugin a token of the pod's service account, which is a cluster's to give; leave it out")
	}
}

// name checks the name of a plugin, including that its program exists.
func (c *checkingProviders) name(at, name string) {
	switch {
	case name == "":
		c.errorf(at, "required")
	case name == "." || name == ".." || strings.ContainsAny(name, "/ "):
		c.errorf(at, "%q is no file name without a space", name)
	case c.seen[name] != "":
		c.errorf(at, "%s is there already, at %s", name, c.seen[name])
	default:
		c.seen[name] = c.layer.origin(at).String()
		c.hasProgram(at, name)
	}
}

func (c *checkingProviders) hasProgram(at, name string) {
	switch err := c.program(name); {
	case errors.Is(err, fs.ErrNotExist):
		c.errorf(at, "there is no %s in --image-credential-provider-bin-dir; put the plugin there, or drop it here", filepath.Join(c.dir, name))
	case err != nil:
		c.errorf(at, "%s cannot be run: %v", filepath.Join(c.dir, name), errors.Unwrap(err))
	}
}
