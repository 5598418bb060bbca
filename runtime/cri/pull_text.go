package cri

import (
	"regexp"
	"strings"
)

// pullChain are the layers that runtimes wrap around the cause of a failed pull.
var pullChain = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`failed to pull and unpack image "[^"]*": `,
	`failed to pull image "[^"]*": `,
	`failed to resolve image: `,
	`failed to resolve reference "[^"]*": `,
	`failed to copy: `,
	`failed to do request: `,
	`httpReadSeeker: failed open: `,
	`RegistryUnavailable: `,
	`SignatureValidationFailed: `,
	`(?i:error )?(?:initializing|creating|writing|copying) (?:source|destination|image) \S+ `,
	`(?:Get|Head|GET|HEAD) "[^"]*": `,
}, `|`) + `)`)

// trimPull is text without the layers in front.
func trimPull(text string) string {
	for {
		rest := pullChain.ReplaceAllString(text, "")
		if rest == text || rest == "" {
			return text
		}
		text = rest
	}
}

// registryOf is the host that an image name speaks of; names without one are
// Docker Hub's.
func registryOf(image string) string {
	first, _, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(first, ".:") || first == "localhost" || first != strings.ToLower(first)) {
		return printable(first)
	}
	return "docker.io"
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// after is what follows the first of words that s contains, else s.
func after(s string, words ...string) string {
	for _, w := range words {
		if _, rest, ok := strings.Cut(s, w); ok {
			return rest
		}
	}
	return s
}

var sandboxImageName = regexp.MustCompile(`failed to (?:get sandbox image|pull image) "([^"]+)": (.*)`)

// sandboxImage explains a sandbox that failed for want of the runtime's own
// sandbox image, which nobody who writes a pod has ever heard of.
func sandboxImage(err error) error {
	known, ok := err.(*callError)
	if !ok {
		return err
	}
	m := sandboxImageName.FindStringSubmatch(known.text)
	if m == nil {
		return err
	}
	return &callError{
		text: "the runtime's sandbox image " + m[1] + " is not present: " + whyPull(m[1], m[2], true).text +
			"; load it into the runtime, or name a present one in the runtime's configuration",
		kinds: known.kinds,
	}
}
