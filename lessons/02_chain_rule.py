# %% [markdown]
# # 2 · The chain rule
#
# A gradient travels backwards, one op at a time. At each op it is multiplied by that op's **local
# slope**: how much the op's result moves when its input moves. That is the chain rule
# along one path; lesson 3 adds the paths up.

# %%
import minigrad as mg

# %% [markdown]
# ## numbers
#
# Start with plain numbers: $L = (a b + c)^2$. Before you press **Next**, guess: if $a$ grows by
# 0.01, by how much does $L$ change? Very nearly by $a$'s gradient times 0.01.

# %%
a = mg.tensor(mg.lesson.input("a", 2), requires_grad=True)
b = mg.tensor(mg.lesson.input("b", -3), requires_grad=True)
c = mg.tensor(mg.lesson.input("c", 10), requires_grad=True)
d = a * b
e = d + c
L = e**2
mg.show(L)

# %% [markdown]
# Follow one path: $\frac{\partial L}{\partial a} = 2e \cdot 1 \cdot b$, three local slopes
# multiplied, read from right to left in the graph. An addition passes the gradient on as it is; a
# multiplication hands each side the *other* side's value.

# %% [markdown]
# ## a tanh neuron
#
# Two inputs, two weights, a bias, and a squashing function. Where tanh is flat its slope
# $y' = 1 - y^2$ is near 0, and almost nothing gets through: make `bias` 4 and watch the gradients
# of the weights fade.

# %%
x1 = mg.tensor(2.0)
x2 = mg.tensor(0.0)
w1 = mg.tensor(mg.lesson.input("w1", -3), requires_grad=True)
w2 = mg.tensor(mg.lesson.input("w2", 1), requires_grad=True)
bias = mg.tensor(mg.lesson.input("bias", 6.88), requires_grad=True)
p = w1 * x1
q = w2 * x2
s = p + q
n = s + bias
out = mg.tanh(n)
mg.show(out)

# %% [markdown]
# `w2` has the gradient 0 although the neuron is alive: its input `x2` is 0, so at the moment it
# cannot change anything. The inputs are dashed: they are constants, nobody asked for their
# gradients, and the walk stops there.
