package render

import "strings"

// Expand replaces each $(NAME) in text by the value of NAME. If lookup returns false, $(NAME) is
// not changed. $$ is replaced by a dollar sign, so $$(NAME) becomes $(NAME). A dollar sign before
// any other character and a $( without a closing parenthesis are not changed. Values are not
// expanded again.
func Expand(text string, lookup func(name string) (value string, ok bool)) string {
	var out strings.Builder
	for {
		plain, rest, found := strings.Cut(text, "$")
		out.WriteString(plain)
		if !found {
			return out.String()
		}
		text = expandOne(&out, rest, lookup)
	}
}

// expandOne writes the expansion of a dollar sign followed by rest, and returns the
// remainder of rest.
func expandOne(out *strings.Builder, rest string, lookup func(string) (string, bool)) string {
	if after, ok := strings.CutPrefix(rest, "$"); ok {
		out.WriteByte('$')
		return after
	}
	if open, ok := strings.CutPrefix(rest, "("); ok {
		if name, after, closed := strings.Cut(open, ")"); closed {
			if value, known := lookup(name); known {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			return after
		}
	}
	out.WriteByte('$')
	return rest
}

func expandAll(texts []string, lookup func(string) (string, bool)) []string {
	var all []string
	for _, t := range texts {
		all = append(all, Expand(t, lookup))
	}
	return all
}
