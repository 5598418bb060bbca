package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest/lazyregexp"
)

// A Policy decides for which images podd verifies the credentials of a pod.
type Policy struct {
	// Mode is the field imagePullCredentialsVerificationPolicy of the KubeletConfiguration.
	Mode kubelet.ImagePullCredentialsVerificationPolicy
	// Allowlist contains patterns for which CheckPattern returns nil. It is used if Mode is
	// NeverVerifyAllowlistedImages.
	Allowlist []string
}

// requiresCredentials reports whether a pod needs credentials for a repository. wasPulled reports
// whether podd has pulled the image. An unknown mode requires credentials.
func (p Policy) requiresCredentials(repository string, wasPulled bool) bool {
	switch p.Mode {
	case kubelet.NeverVerify:
		return false
	case kubelet.NeverVerifyPreloadedImages:
		return wasPulled
	case kubelet.NeverVerifyAllowlistedImages:
		return !slices.ContainsFunc(p.Allowlist, func(pattern string) bool { return matchesPattern(pattern, repository) })
	}
	return true
}

// matchesPattern reports whether a pattern of the allowlist matches a repository. A pattern that
// ends in /* matches all repositories below it.
func matchesPattern(pattern, repository string) bool {
	if prefix, isPrefix := strings.CutSuffix(pattern, "*"); isPrefix {
		return strings.HasPrefix(repository, prefix)
	}
	return pattern == repository
}

// pathComponent matches a component of the path of a repository.
var pathComponent = lazyregexp.New(`^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$`)

// registryHost matches the registry of a repository, with an optional port.
var registryHost = lazyregexp.New(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?$`)

// CheckPattern returns an error if pattern is not a valid element of
// preloadedImagesVerificationAllowlist: a repository without tag and digest, or a registry with an
// optional path, followed by /*.
func CheckPattern(pattern string) error {
	prefix, isPrefix := strings.CutSuffix(pattern, "/*")
	switch {
	case pattern != strings.TrimSpace(pattern):
		return errors.New("it begins or ends with a space")
	case strings.Contains(prefix, "*"):
		return errors.New("* is allowed only as the last part, as in registry.example/team/*")
	case prefix == "":
		return errors.New("it names no registry and no repository")
	case isPrefix:
		return nil // like the kubelet, accept every prefix before /*
	case prefix != Repository(prefix):
		return errors.New("it contains a tag or a digest; remove it")
	}
	return checkRepository(prefix)
}

// checkRepository returns an error if a name without tag and digest is not a valid repository.
func checkRepository(name string) error {
	parts := strings.Split(name, "/")
	if len(parts) > 1 && registryHost().MatchString(parts[0]) {
		parts = parts[1:]
	}
	for _, part := range parts {
		if !pathComponent().MatchString(part) {
			return fmt.Errorf("%q is not a valid part of the name of a repository", part)
		}
	}
	return nil
}

// Repository returns the name of an image without its tag and digest.
func Repository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}
