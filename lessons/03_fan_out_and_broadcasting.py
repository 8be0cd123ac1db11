# %% [markdown]
# # 3 · Fan-out and broadcasting
#
# Why do gradients **add up**? Because a value that is used twice moves the result twice. The
# ledger below each step shows it: before + this step = after.

# %%
import minigrad as mg

# %% [markdown]
# ## x*x + x
#
# `x` is used three times: twice by the multiplication, once by the addition. Each use sends a
# contribution, and $\bar x = x + x + 1$.

# %%
x = mg.tensor(mg.lesson.input("x", 3), requires_grad=True)
square = x * x
L = square + x
mg.show(L)

# %% [markdown]
# ## x - mean(x)
#
# How does a centred value answer to the cells of `x`? Many people expect slope 1, for its own cell
# alone. But there are two paths: straight to `x` with slope 1, and through the mean, which hears
# from *all* cells and hands each of them $-\frac{1}{n}$. The weights pick what we look at: with
# `[1, 0, 0]` it is the first centred value alone. The product has no name in the code, so the graph
# calls it `v4`, after its place.

# %%
x = mg.tensor(mg.lesson.input("x", [2, 4, 9]), requires_grad=True)
weights = mg.tensor(mg.lesson.input("weights", [1, 0, 0]))
m = x.mean()
centred = x - m
L = (centred * weights).sum()
mg.show(L)

# %% [markdown]
# Set all weights to 1: the gradient becomes 0. Moving every value together does not change a
# centred value.

# %% [markdown]
# ## a bias added to a batch
#
# One bias for every row of a batch. It is copied along axis 0, and what its copies hear is added
# up: the gradient of a bias is a **sum over the batch**.

# %%
x = mg.tensor(mg.lesson.input("x", [[1, 2, -1], [0.5, -1, 3], [2, 0, 1], [-1, 1, 0.5]]))
w = mg.tensor([[1, -1], [0.5, 2], [-1, 1]], requires_grad=True)
b = mg.tensor(mg.lesson.input("b", [0.5, -0.25]), requires_grad=True)
h = x @ w
y = h + b
a = mg.relu(y)
L = a.mean()
mg.show(L)
