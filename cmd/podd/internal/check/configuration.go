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
func configErrors(err error) (messages []string) {
	if joinedErr, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joinedErr.Unwrap() {
			messages = append(messages, configErrors(e)...)
		}
		return messages
	}
	if list, ok := errors.AsType[config.Errors](err); ok {
		for _, p := range list {
			messages = append(messages, withLocation(p))
		}
		return messages
	}
	return []string{err.Error()}
}
