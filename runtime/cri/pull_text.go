package cri

import (
	"strings"

	"podd/manifest/lazyregexp"
)

// pullPrefixPattern matches the prefixes that runtimes add to the cause of a failed pull.
var pullPrefixPattern = lazyregexp.New(`^(?:` + strings.Join([]string{
	`failed to pull and unpack image "[^"]*": `,
	`failed to pull image "[^"]*": `,
	`unable to pull image(?: or OCI artifact)?: `,
	`pull image err: `,
	`failed to resolve image: `,
	`failed to resolve reference "[^"]*": `,
	`failed to copy: `,
	`failed to do request: `,
	`httpReadSeeker: failed open: `,
	`RegistryUnavailable: `,
	`SignatureValidationFailed: `,
	`(?i:error )?(?:initializing|creating|writing|copying) (?:source|destination|image) \S+ `,
	`pinging container registry \S+ `,
	`reading manifest \S+ in \S+ `,
	`(?:Get|Head|GET|HEAD) "[^"]*": `,
}, `|`) + `)`)

// trimPullPrefixes removes the prefixes in pullPrefixPattern from text.
func trimPullPrefixes(text string) string {
	for {
		rest := pullPrefixPattern().ReplaceAllString(text, "")
		if rest == text || rest == "" {
			return text
		}
		text = rest
	}
}

// registryOf returns the registry host of an image name. For a name without a host it
// returns "docker.io".
func registryOf(image string) string {
	first, _, hasSlash := strings.Cut(image, "/")
	if hasSlash && (strings.ContainsAny(first, ".:") || first == "localhost" || first != strings.ToLower(first)) {
		return makePrintable(first)
	}
	return "docker.io"
}

// containsAny reports whether s contains at least one element of words.
func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// textAfter searches s for the elements of words, in their order. It returns the part of s after
// the first element that it finds, or s if it finds none.
func textAfter(s string, words ...string) string {
	for _, w := range words {
		if _, rest, ok := strings.Cut(s, w); ok {
			return rest
		}
	}
	return s
}

var sandboxImagePattern = lazyregexp.New(`failed to (?:get sandbox image|pull image) "([^"]+)": (.*)`)

// explainSandboxImage adds a remedy to err if a sandbox failed because the runtime's sandbox image
// is missing. Users need the remedy because no manifest names this image.
func explainSandboxImage(err error) error {
	callErr, ok := err.(*callError)
	if !ok {
		return err
	}
	m := sandboxImagePattern().FindStringSubmatch(callErr.text)
	if m == nil {
		return err
	}
	return &callError{
		text: "the runtime's sandbox image " + m[1] + " is not present: " + parsePullError(m[1], m[2], true).text +
			"; import the image into the runtime, or set another sandbox image in the runtime's configuration",
		kinds: callErr.kinds,
	}
}
