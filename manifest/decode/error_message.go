package decode

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/lazyregexp"
	"podd/manifest/redact"
	"podd/manifest/wording"
)

// regexNotePattern matches the part of an apimachinery message that quotes a regular expression.
// errorMessage removes this part, because a regular expression does not help users.
var regexNotePattern = lazyregexp.New(`,? ?(?:or )?regex used for validation is '[^']*'`)

// errorMessage returns the message for a validation error.
func errorMessage(e *field.Error) string {
	value := wording.Clip(fmt.Sprint(e.BadValue), 80)
	if redact.IsPrivate(e.Field) {
		value = "its value"
	} else if reflect.ValueOf(e.BadValue).Kind() == reflect.String {
		value = strconv.Quote(value)
	}
	detail := wording.Clip(regexNotePattern().ReplaceAllLiteralString(e.Detail, ""), 500)
	switch e.Type {
	case field.ErrorTypeRequired:
		if detail == "" {
			return "required"
		}
		return "required; " + detail
	case field.ErrorTypeDuplicate:
		return value + " is a duplicate; make the values different"
	case field.ErrorTypeNotSupported:
		return value + " is not supported; " + strings.Replace(detail, "supported values:", "use one of", 1)
	case field.ErrorTypeNotFound:
		return value + " not found" + detail
	case field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return detail
	}
	if s, ok := e.BadValue.(string); ok && s == "" || e.BadValue == nil {
		return detail
	}
	if redact.IsPrivate(e.Field) {
		return detail
	}
	return value + ": " + detail
}
