// Package redact defines which fields of a pod are private, and removes them.
//
//	Pod         returns a copy without private values    port 10255, the page without a login
//	Text        removes private values from a text       log lines, events
//	StatusText  like Text, and removes status messages   errors of the API server, problems on port 10255
//	Data        removes data of Secrets from a text      errors of the runtime
//
// These values are private: environment variables, headers of probes and hooks, annotations,
// queries in the URLs of probes and hooks, and parameters of volume drivers. Every message in a
// status is also private, because the message can contain the end of a log or quote a program.
// Names are public. The table in fields.go lists the public fields; every other field is private.
// Pods are not redacted on root's socket, in the authenticated API and in the cluster.
//
// A short value could also be an ordinary word. Such a value is removed from a text only where the
// text marks it as a value, as in PASSWORD=tiger or "tiger". Values of less than four bytes stay.
//
// The package imports no other package of podd, so that all of them can import it.
package redact

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
)

// Pod returns a copy of p without private values.
func Pod(p *v1.Pod) *v1.Pod {
	podCopy := p.DeepCopy()
	eachTextField(reflect.ValueOf(podCopy).Elem(), func(name string, field reflect.Value, isPublic bool) {
		removePrivate, isPartlyPrivate := partlyPrivateFields[name]
		switch {
		case isPublic:
		case isPartlyPrivate:
			removePrivate(field)
		default:
			field.SetZero()
		}
	})
	return podCopy
}

// replacement replaces a private value in a text.
const replacement = "<redacted>"

// Short values such as a port, a log level or "localhost" occur in most texts by chance, so masking
// them everywhere would make errors unreadable. A long value, or a long line of a value, is masked
// everywhere in a text. It must have at least minValueLength bytes, or minDataLength bytes in the
// data of a Secret. If it has at most maxWordLength bytes, two more conditions apply:
//   - It must be a whole word of the text.
//   - It must not consist of lowercase letters only, except in the data of a Secret.
//
// Any other value of at least minMarkedLength bytes is masked only where the text marks it as a
// value: as NAME=value, or in quotation marks that contain nothing else.
const (
	minValueLength  = 8
	minDataLength   = 4
	minMarkedLength = 4
	maxWordLength   = 12
)

// Text returns text without the private values of the pods. A pod may be nil. Text is for texts of
// other programs, such as errors of a runtime, because podd's own texts quote no private value. It
// does not remove a value that is also in a public field of the pod. It does not search for the
// messages in a status. These messages quote the output of containers, but errors of a runtime do
// not.
func Text(text string, pods ...*v1.Pod) string { return maskPods(text, pods, false) }

// StatusText is like Text, and also removes the messages in the status of the pods. It is
// for texts of programs that read the status, such as the webhooks of a cluster.
func StatusText(text string, pods ...*v1.Pod) string { return maskPods(text, pods, true) }

func maskPods(text string, pods []*v1.Pod, includeStatus bool) string {
	for _, p := range pods {
		if p != nil {
			text = maskPod(text, p, includeStatus)
		}
	}
	return text
}

// Data returns text without the data of the Secrets. A Secret may be nil. A runtime can quote the
// data if a variable or an argument of a container refers to the Secret.
func Data(text string, secrets ...*v1.Secret) string {
	var values []string
	for _, s := range secrets {
		if s == nil {
			continue
		}
		for _, value := range s.Data {
			values = append(values, findQuoted(text, quotableParts("EnvVar.Value", string(value)))...)
		}
		for _, value := range s.StringData {
			values = append(values, findQuoted(text, quotableParts("EnvVar.Value", value))...)
		}
	}
	return maskValues(text, values, nil, isLongData)
}

// maskPod masks the private values of p in text. If includeStatus is true, it also masks the
// private values in the status of p.
func maskPod(text string, p *v1.Pod, includeStatus bool) string {
	var values, publicTexts []string
	visit := func(name string, field reflect.Value, isPublic bool) {
		eachText(field, func(s string) {
			if isPublic {
				publicTexts = append(publicTexts, s)
				return
			}
			values = append(values, findQuoted(text, quotableParts(name, s))...)
		})
	}
	for _, key := range sourceAnnotations {
		publicTexts = append(publicTexts, p.Annotations[key])
	}
	eachTextField(reflect.ValueOf(&p.ObjectMeta), visit)
	eachTextField(reflect.ValueOf(&p.Spec), visit)
	if includeStatus {
		eachTextField(reflect.ValueOf(&p.Status), visit)
	}
	return maskValues(text, values, publicTexts, isLong)
}

// maskValues masks the values in text. It does not mask a value that is part of a string in
// publicTexts, the public fields of the pod. It masks longer values first, because one value can be
// part of another value. If isLong returns false for a value, maskValues masks the value only where
// the text marks it as a value.
func maskValues(text string, values, publicTexts []string, isLong func(string) bool) string {
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	for _, value := range slices.Compact(values) {
		if !slices.ContainsFunc(publicTexts, func(s string) bool { return containsValue(s, value) }) {
			text = maskTruncated(maskValue(text, value, isLong(value)), value, isLong(value))
		}
	}
	return text
}

// containsValue reports whether text contains value. A short value must be a whole word of the
// text: "latest" does not contain the value "test".
func containsValue(text, value string) bool {
	for at := range indexes(text, value) {
		if !isPartOfWord(text, at, len(value)) {
			return true
		}
	}
	return false
}

// findQuoted returns those elements of parts that occur in text. If text was shortened, it may end
// in the middle of a part. In this case the result also contains each part whose first
// minMarkedLength bytes are in text. findQuoted ignores parts that are shorter than
// minMarkedLength.
func findQuoted(text string, parts []string) (found []string) {
	shortenedText, isCutOff := strings.CutSuffix(text, "…")
	for _, part := range parts {
		switch {
		case len(part) < minMarkedLength:
		case strings.Contains(text, part), isCutOff && strings.Contains(shortenedText, part[:minMarkedLength]):
			found = append(found, part)
		}
	}
	return found
}

// maskTruncated masks the beginning of value at the end of a text that was shortened. It returns all
// other texts unchanged.
func maskTruncated(text, value string, isLong bool) string {
	shortenedText, ok := strings.CutSuffix(text, "…")
	if !ok {
		return text
	}
	for n := min(len(shortenedText), len(value)); n >= minMarkedLength; n-- {
		at := len(shortenedText) - n
		if shortenedText[at:] == value[:n] && (canBeginValue(shortenedText[:at]) || isLong && n >= minValueLength && !isPartOfWord(shortenedText, at, n)) {
			return shortenedText[:at] + replacement
		}
	}
	return text
}

func isLong(s string) bool {
	return len(s) >= minValueLength && (len(s) > maxWordLength || !isLower(s))
}

func isLongData(s string) bool { return len(s) >= minDataLength }

func isLower(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 'a' || 'z' < r })
}

// quotableParts returns the strings of a private value that a text may quote: the whole value
// and its lines; for a path, its query and the values in the query; for a variable, a header or
// a status message, its long words. Short words are omitted, because they may be a reference, a
// scheme or ordinary text. Each string is also returned in the forms in which Go and errors of a
// runtime quote it. name is the "Type.Field" of the value.
func quotableParts(name, value string) []string {
	parts := []string{value}
	switch _, field, _ := strings.Cut(name, "."); {
	case name == "HTTPGetAction.Path":
		_, value, _ = strings.Cut(value, "?")
		parts = append(strings.FieldsFunc(value, func(r rune) bool { return r == '&' || r == '=' }), value)
	case name == "EnvVar.Value", name == "HTTPHeader.Value", field == "Message":
		for _, w := range strings.FieldsFunc(value, func(r rune) bool { return !isWordRune(r) && !strings.ContainsRune("-_./+~", r) }) {
			if len(w) > maxWordLength {
				parts = append(parts, w)
			}
		}
	}
	for line := range strings.Lines(value) {
		parts = append(parts, strings.TrimSpace(line))
	}
	for _, part := range parts {
		quotedForms := []string{shortenID(part)}
		if !isPlain(part) {
			quoted := strconv.Quote(part)
			quotedForms = append(quotedForms, quoted[1:len(quoted)-1], replaceControls(part))
		}
		for _, form := range quotedForms {
			if form != part {
				parts = append(parts, form)
			}
		}
	}
	return parts
}

// isPlain reports whether strconv.Quote and replaceControls change nothing in s. It is much faster
// than these functions, and almost all values are plain. It may return false for a string
// that they do not change.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return !strings.HasPrefix(s, " ") && !strings.HasSuffix(s, " ")
}

// replaceControls returns a copy of s in which a space replaces each control character. Errors of
// the runtime show control characters in this way.
func replaceControls(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}

// shortenID returns the first 12 digits of a word of 64 hexadecimal digits. Such a word can be the
// ID of a container, and errors of the runtime shorten IDs to 12 digits. shortenID returns all
// other texts unchanged.
func shortenID(s string) string {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return s
	}
	return s[:12]
}

// maskValue masks value in text: everywhere, or only where the text marks it as a value.
func maskValue(text, value string, everywhere bool) string {
	var b strings.Builder
	copyFrom := 0
	for at := range indexes(text, value) {
		if !isPartOfWord(text, at, len(value)) && (everywhere || isMarkedAsValue(text[:at], text[at+len(value):])) {
			b.WriteString(text[copyFrom:at] + replacement)
			copyFrom = at + len(value)
		}
	}
	return b.String() + text[copyFrom:]
}

// indexes yields the positions in text at which value begins. The occurrences do not overlap.
// value must not be empty.
func indexes(text, value string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for offset := 0; ; offset += len(value) {
			at := strings.Index(text[offset:], value)
			if at < 0 || !yield(offset+at) {
				return
			}
			offset += at
		}
	}
}

// isPartOfWord reports whether the n bytes of text at the given position are only a part of a word.
// It returns false if n is greater than maxWordLength.
func isPartOfWord(text string, at, n int) bool {
	runeBefore, _ := utf8.DecodeLastRuneInString(text[:at])
	runeAfter, _ := utf8.DecodeRuneInString(text[at+n:])
	return n <= maxWordLength && (isWordRune(runeBefore) || isWordRune(runeAfter))
}

// quotationMarks are the quotation marks around values.
const quotationMarks = "\"'`"

// isMarkedAsValue reports whether the text before and after a word marks the word as a value: as
// NAME=value, or in quotation marks, which may be escaped.
func isMarkedAsValue(before, after string) bool {
	if !canBeginValue(before) {
		return false
	}
	mark := before[len(before)-1:]
	return mark == "=" || strings.HasPrefix(strings.TrimLeft(after, `\`), mark)
}

// canBeginValue reports whether a value may begin after text.
func canBeginValue(text string) bool {
	return text != "" && strings.Contains("="+quotationMarks, text[len(text)-1:])
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// eachTextField calls visit for every text field of the struct v and of the structs in it. name has the
// form "Type.Field", and isPublic reports whether publicFields contains the field.
func eachTextField(v reflect.Value, visit func(name string, field reflect.Value, isPublic bool)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachTextField(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachTextField(v.Index(i), visit)
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			switch f := t.Field(i); {
			case !f.IsExported(): // skip an internal field of a time or a quantity
			case isText(f.Type):
				visit(t.Name()+"."+f.Name, v.Field(i), publicFields[t.Name()][f.Name])
			default:
				eachTextField(v.Field(i), visit)
			}
		}
	}
}

// isText reports whether t is the type of a text field. Strings, bytes and maps are text fields,
// and so are lists of text fields and pointers to text fields.
func isText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Map:
		return true
	case reflect.Slice, reflect.Pointer, reflect.Array:
		return t.Elem().Kind() == reflect.Uint8 || isText(t.Elem())
	}
	return false
}

// eachText calls visit for every string of a field, except the keys of a map.
func eachText(v reflect.Value, visit func(string)) {
	switch v.Kind() {
	case reflect.String:
		visit(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), visit)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			visit(string(v.Bytes()))
			return
		}
		for i := range v.Len() {
			eachText(v.Index(i), visit)
		}
	case reflect.Map:
		for r := v.MapRange(); r.Next(); {
			eachText(r.Value(), visit)
		}
	}
}
