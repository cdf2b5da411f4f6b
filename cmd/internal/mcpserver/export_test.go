package mcpserver

// ResultSchema is what the tools that run code answer by.
var ResultSchema = resultSchema
