package manifest

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// expression is the part of apimachinery's messages that nobody reads.
var expression = regexp.MustCompile(`,? ?(?:or )?regex used for validation is '[^']*'`)

// sentence is a validation error in podd's words.
func sentence(e *field.Error) string {
	shown := clip(fmt.Sprint(e.BadValue), 80)
	if reflect.ValueOf(e.BadValue).Kind() == reflect.String {
		shown = strconv.Quote(shown)
	}
	detail := clip(expression.ReplaceAllLiteralString(e.Detail, ""), 500)
	switch e.Type {
	case field.ErrorTypeRequired:
		if detail == "" {
			return "required"
		}
		return "required; " + detail
	case field.ErrorTypeDuplicate:
		return shown + " is there twice; make them differ"
	case field.ErrorTypeNotSupported:
		return shown + " is not known; " + strings.Replace(detail, "supported values:", "use one of", 1)
	case field.ErrorTypeNotFound:
		return shown + " not found" + detail
	case field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return detail
	}
	if s, ok := e.BadValue.(string); ok && s == "" || e.BadValue == nil {
		return detail
	}
	return shown + ": " + detail
}

// printable bounds a text that has been written by others, and takes out what
// would break a line or steer a terminal.
func printable(s string, n int) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, clip(s, n))
}

// clip bounds a text that came from outside, on a rune's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
