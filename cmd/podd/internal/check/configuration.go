package check

import (
	"errors"

	"podd/cmd/podd/internal/config"
)

// checkConfiguration reports the problems of the flags and configuration files.
func checkConfiguration(f *Facts, r *Result) {
	r.Detail = "valid"
	for _, w := range f.ConfigWarnings {
		r.warn("correct or remove the setting", "%s", withLocation(w))
	}
	if f.Config != nil {
		return
	}
	r.Detail = "invalid"
	for _, cause := range configErrors(f.ConfigErr) {
		r.fail("correct the setting and run \"podd check\" again, because the other checks need a valid configuration", "%s", cause)
	}
}

// withLocation returns the text of p with its file and line, but without its severity.
func withLocation(p config.Warning) string {
	if place := p.Location(); place != "" {
		return place + ": " + p.Text()
	}
	return p.Text()
}

// configErrors returns the messages of all errors that are joined in err.
func configErrors(err error) (all []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, configErrors(e)...)
		}
		return all
	}
	if list, ok := errors.AsType[config.Errors](err); ok {
		for _, p := range list {
			all = append(all, withLocation(p))
		}
		return all
	}
	return []string{err.Error()}
}
