package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	credential "k8s.io/kubelet/config/v1"

	"podd/manifest"
	"podd/manifest/schema"
	"podd/reconcile/pull/provider"
)

const providerKind = "CredentialProviderConfig"

// providerVersions are the supported values of the apiVersion of the file. All of them are decoded as
// v1. checkTokenAttributes rejects the only field that some versions do not contain (tokenAttributes).
var providerVersions = []string{
	"kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1",
}

// providerSchema is the schema of the file of --image-credential-provider-config.
var providerSchema = sync.OnceValue(func() *schema.Schema { return schema.New[credential.CredentialProviderConfig]() })

// parseProviders parses the CredentialProviderConfig in the file at path. As in the kubelet,
// unknown and duplicate fields are errors. If parseProviders returns problems, the layer must not
// be used.
func parseProviders(path string, data []byte) (*layer, []manifest.Problem) {
	l, problems := parseFile(path, data, providerSchema())
	if l == nil {
		return nil, problems
	}
	version, _ := l.tree["apiVersion"].(string)
	kind, _ := l.tree["kind"].(string)
	if kind != providerKind || !slices.Contains(providerVersions, version) {
		return nil, []manifest.Problem{l.origin("kind").problem(manifest.Error, "", fmt.Sprintf(
			"unsupported apiVersion %q and kind %q; must be apiVersion: %s and kind: %s", version, kind, providerVersions[0], providerKind))}
	}
	problems = append(problems, l.removeInvalid(providerSchema())...)
	for i := range problems {
		problems[i].Severity = manifest.Error
	}
	sortByPosition(problems)
	return l, problems
}

// A providerChecker validates the plugins of one file with the rules of the kubelet.
type providerChecker struct {
	*providerReader
	layer *layer
}

// errorf adds an error that concerns a field.
func (c *providerChecker) errorf(field, format string, args ...any) {
	c.problems = append(c.problems, c.layer.origin(field).problem(manifest.Error, field, fmt.Sprintf(format, args...)))
}

// checkProvider checks a plugin. fieldPath is the field path of the plugin, such as providers[0].
func (c *providerChecker) checkProvider(fieldPath string, p *credential.CredentialProvider) {
	c.checkName(joinField(fieldPath, "name"), p.Name)
	switch {
	case p.APIVersion == "":
		c.errorf(joinField(fieldPath, "apiVersion"), "required; must be one of %s", strings.Join(provider.APIVersions, ", "))
	case !slices.Contains(provider.APIVersions, p.APIVersion):
		c.errorf(joinField(fieldPath, "apiVersion"), "unknown value %q; must be one of %s", p.APIVersion, strings.Join(provider.APIVersions, ", "))
	}
	if len(p.MatchImages) == 0 {
		c.errorf(joinField(fieldPath, "matchImages"), "the list is empty; add at least one image pattern")
	}
	for i, pattern := range p.MatchImages {
		if provider.CheckPattern(pattern) != nil {
			c.errorf(joinIndex(joinField(fieldPath, "matchImages"), i), "%q is not a registry with an optional port and path, such as *.example.com:5000/team", pattern)
		}
	}
	switch d := p.DefaultCacheDuration; {
	case d == nil:
		c.errorf(joinField(fieldPath, "defaultCacheDuration"), "required; 0s disables the cache")
	case d.Duration < 0:
		c.errorf(joinField(fieldPath, "defaultCacheDuration"), "%s is negative", d.Duration)
	}
	if p.TokenAttributes != nil {
		c.checkTokenAttributes(joinField(fieldPath, "tokenAttributes"), p)
	}
}

// checkTokenAttributes checks the tokenAttributes of plugin p with the rules of the kubelet.
func (c *providerChecker) checkTokenAttributes(fieldPath string, p *credential.CredentialProvider) {
	t := p.TokenAttributes
	if version := c.layer.tree["apiVersion"]; version != providerVersions[0] {
		c.errorf(fieldPath, "needs a file with apiVersion: %s", providerVersions[0])
	}
	if p.APIVersion != provider.APIVersions[0] {
		c.errorf(fieldPath, "needs apiVersion: %s", provider.APIVersions[0])
	}
	if t.ServiceAccountTokenAudience == "" {
		c.errorf(joinField(fieldPath, "serviceAccountTokenAudience"), "required")
	}
	switch t.CacheType {
	case credential.TokenServiceAccountTokenCacheType, credential.ServiceAccountServiceAccountTokenCacheType:
	case "":
		c.errorf(joinField(fieldPath, "cacheType"), "required; must be Token or ServiceAccount")
	default:
		c.errorf(joinField(fieldPath, "cacheType"), "unknown value %q; must be Token or ServiceAccount", t.CacheType)
	}
	const requiredKeysField, optionalKeysField = "requiredServiceAccountAnnotationKeys", "optionalServiceAccountAnnotationKeys"
	switch {
	case t.RequireServiceAccount == nil:
		c.errorf(joinField(fieldPath, "requireServiceAccount"), "required")
	case *t.RequireServiceAccount && !c.hasCluster:
		c.errorf(joinField(fieldPath, "requireServiceAccount"), "true needs --kubeconfig, because an API server issues the tokens of service accounts; set it to false, or remove tokenAttributes")
	case !*t.RequireServiceAccount && len(t.RequiredServiceAccountAnnotationKeys) > 0:
		c.errorf(joinField(fieldPath, requiredKeysField), "needs requireServiceAccount: true")
	}
	usedKeys := map[string]bool{}
	c.checkAnnotationKeys(joinField(fieldPath, requiredKeysField), t.RequiredServiceAccountAnnotationKeys, usedKeys)
	c.checkAnnotationKeys(joinField(fieldPath, optionalKeysField), t.OptionalServiceAccountAnnotationKeys, usedKeys)
}

// checkAnnotationKeys checks that keys are valid and unique. usedKeys contains the keys of both lists.
func (c *providerChecker) checkAnnotationKeys(fieldPath string, keys []string, usedKeys map[string]bool) {
	for i, key := range keys {
		for _, message := range validation.IsQualifiedName(strings.ToLower(key)) {
			c.errorf(joinIndex(fieldPath, i), "%q is not a key of an annotation: %s", key, message)
		}
		if usedKeys[key] {
			c.errorf(joinIndex(fieldPath, i), "duplicate key %s; a key may be only once in both lists", key)
		}
		usedKeys[key] = true
	}
}

// checkName checks that the name of a plugin is a unique file name, and that the program with this
// name can be run.
func (c *providerChecker) checkName(fieldPath, name string) {
	switch {
	case name == "":
		c.errorf(fieldPath, "required")
	case name == "." || name == ".." || strings.ContainsAny(name, "/ "):
		c.errorf(fieldPath, "%q is not a valid provider name; it must be a file name without spaces", name)
	case c.positions[name] != "":
		c.errorf(fieldPath, "duplicate name %s, already used at %s", name, c.positions[name])
	default:
		c.positions[name] = c.layer.origin(fieldPath).String()
		c.checkRunnable(fieldPath, name)
	}
}

// checkRunnable checks that the program of the plugin called name can be run. fieldPath is the
// field path of the name.
func (c *providerChecker) checkRunnable(fieldPath, name string) {
	switch err := c.providerReader.checkProgram(name); {
	case errors.Is(err, fs.ErrNotExist):
		c.errorf(fieldPath, "%s does not exist; install the plugin in --image-credential-provider-bin-dir, or remove this provider", filepath.Join(c.programDir, name))
	case err != nil:
		c.errorf(fieldPath, "%s cannot be run: %v", filepath.Join(c.programDir, name), errors.Unwrap(err))
	}
}
