package render

import "strings"

// Expand replaces each $(NAME) in text by the value of NAME. If lookup returns false, $(NAME) is
// not changed. $$ is replaced by a dollar sign, so $$(NAME) becomes $(NAME). A dollar sign before
// any other character and a $( without a closing parenthesis are not changed. Values are not
// expanded again.
func Expand(text string, lookup func(name string) (value string, ok bool)) string {
	var expanded strings.Builder
	for {
		literal, rest, hasDollar := strings.Cut(text, "$")
		expanded.WriteString(literal)
		if !hasDollar {
			return expanded.String()
		}
		text = expandOne(&expanded, rest, lookup)
	}
}

// expandOne writes the expansion of a dollar sign that is followed by rest. It returns the part of
// rest after the expansion.
func expandOne(expanded *strings.Builder, rest string, lookup func(string) (string, bool)) string {
	if remainder, ok := strings.CutPrefix(rest, "$"); ok {
		expanded.WriteByte('$')
		return remainder
	}
	if open, ok := strings.CutPrefix(rest, "("); ok {
		if name, after, isClosed := strings.Cut(open, ")"); isClosed {
			if value, exists := lookup(name); exists {
				expanded.WriteString(value)
			} else {
				expanded.WriteString("$(" + name + ")")
			}
			return after
		}
	}
	expanded.WriteByte('$')
	return rest
}

func expandAll(texts []string, lookup func(string) (string, bool)) []string {
	var expanded []string
	for _, t := range texts {
		expanded = append(expanded, Expand(t, lookup))
	}
	return expanded
}
