package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Tokens are users by the digest of their bearer token, so that looking one up
// takes no time that tells of another, and no token stays in memory.
type Tokens map[[sha256.Size]byte]User

// ParseTokens reads a token file as the apiserver's: lines of
//
//	token,user,uid[,"group1,group2"]
//
// Errors name the line and no token.
func ParseTokens(text []byte) (Tokens, error) {
	all := Tokens{}
	lines := csv.NewReader(bytes.NewReader(text))
	lines.FieldsPerRecord, lines.Comment, lines.TrimLeadingSpace = -1, '#', true
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			return nil, fmt.Errorf("line %d is no comma-separated values: %w", bad.Line, bad.Err)
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		if len(fields) < 3 || fields[0] == "" || fields[1] == "" {
			return nil, fmt.Errorf(`line %d: want token,user,uid and perhaps "group,group"`, line)
		}
		digest := sha256.Sum256([]byte(fields[0]))
		if _, twice := all[digest]; twice {
			return nil, fmt.Errorf("line %d has the token of an earlier line", line)
		}
		all[digest] = User{Name: fields[1], Groups: append(groups(fields[3:]), authenticated)}
	}
}

func groups(fields []string) []string {
	var all []string
	for _, field := range fields {
		for g := range strings.SplitSeq(field, ",") {
			if g = strings.TrimSpace(g); g != "" {
				all = append(all, g)
			}
		}
	}
	return all
}

func (t Tokens) user(token string) (User, bool) {
	u, ok := t[sha256.Sum256([]byte(token))]
	return u, ok && token != ""
}
