package token

// Kind says what a token is.
type Kind uint8

// Kinds of tokens. A word is whatever pf takes for a string without quotes:
// names, addresses, ports, port ranges, keywords. A number is a word of digits.
const (
	EOF     Kind = iota
	Newline      // end of a line that is not continued
	Word
	Number
	String // in quotes; Text is what is between them, never a keyword
	Macro  // $name; Text is the name
	LeftBrace
	RightBrace
	LeftParen
	RightParen
	Comma
	Slash
	Not          // !
	Equal        // =
	NotEqual     // !=
	Less         // <
	LessEqual    // <=
	Greater      // >
	GreaterEqual // >=
	Outside      // <>
	Inside       // ><
	Arrow        // ->
	Minus        // -
	Char         // any other byte, which no rule of the grammar takes
	Bad          // something that an error was reported for already
)

var names = [...]string{
	EOF: "end of file", Newline: "end of line", Word: "word", Number: "number", String: "string", Macro: "macro",
	LeftBrace: "{", RightBrace: "}", LeftParen: "(", RightParen: ")", Comma: ",", Slash: "/", Not: "!",
	Equal: "=", NotEqual: "!=", Less: "<", LessEqual: "<=", Greater: ">", GreaterEqual: ">=",
	Outside: "<>", Inside: "><", Arrow: "->", Minus: "-", Char: "character", Bad: "error",
}

// String is what the kind is called in messages; a sign stands for itself.
func (k Kind) String() string { return names[k] }

// Token is a piece of text that the grammar does not take apart further.
type Token struct {
	Kind Kind
	Text string
	Span
}

// IsText reports whether t can stand where a name or value is asked for.
func (t Token) IsText() bool { return t.Kind == Word || t.Kind == Number || t.Kind == String }
