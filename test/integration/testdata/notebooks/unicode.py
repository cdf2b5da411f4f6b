# %%
print("naïve café 🌲 日本語 \u0007 \x1b[31mred\x1b[0m")
# %%
"tab\t quote\" backslash\\ \u2028 \U0001F600"
# %%
print("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))
# %%
{"ключ": "значение", "鍵": ["値"]}
# %%
raise ValueError("Ошибка 🌲")
